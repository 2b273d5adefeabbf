"""A provider of OpenID Connect for tests, with real keys of openssl: RS256 and ES256, discovery, keys, codes with PKCE. Tests play
the browser: they ask `authorize` for a code and bring it to droverd. What a token says and how it is signed may be changed."""
import base64
import hashlib
import hmac
import http.server
import json
import os
import secrets
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.parse


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*args, data=None):
    return subprocess.run(["openssl", *args], input=data, capture_output=True, check=True).stdout


class Key:
    def __init__(self, folder, kid, *how):
        self.kid, self.path = kid, f"{folder}/{kid}.pem"
        openssl("genpkey", "-out", self.path, *how)
        self.public = openssl("pkey", "-in", self.path, "-pubout")
        der = openssl("pkey", "-in", self.path, "-pubout", "-outform", "DER")
        if "RSA" in how:
            modulus = bytes.fromhex(openssl("rsa", "-in", self.path, "-noout", "-modulus").decode().strip().split("=")[1])
            self.alg, self.jwk = "RS256", {"kty": "RSA", "n": b64(modulus), "e": "AQAB"}
        else:  # the point is the end of the key: 4, x, y
            self.alg, self.jwk = "ES256", {"kty": "EC", "crv": "P-256", "x": b64(der[-64:-32]), "y": b64(der[-32:])}
        self.jwk |= {"kid": kid, "use": "sig", "alg": self.alg}

    def sign(self, data):
        got = openssl("dgst", "-sha256", "-sign", self.path, data=data)
        if self.alg == "RS256":
            return got
        ints, at = [], 2  # DER: a sequence of two integers
        for _ in range(2):
            n = got[at + 1]
            ints.append(got[at + 2:at + 2 + n].lstrip(b"\0").rjust(32, b"\0"))
            at += 2 + n
        return b"".join(ints)


class Provider:
    CLIENT, SECRET = "drover at test", "s3cret/+&="

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="drover-oidc-")
        rsa = ("-algorithm", "RSA", "-pkeyopt")
        self.keys = {"rsa-1": Key(self.dir, "rsa-1", *rsa, "rsa_keygen_bits:2048"), "rsa-2": Key(self.dir, "rsa-2", *rsa, "rsa_keygen_bits:2048"),
                     "weak": Key(self.dir, "weak", *rsa, "rsa_keygen_bits:1024"), "ec-1": Key(self.dir, "ec-1", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")}
        self.published = ["rsa-1", "ec-1", "weak"]
        self.codes, self.asked, self.document, self.broken = {}, [], {}, False
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self, status, value):
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self):
                provider.asked.append(self.path)
                if self.path.startswith("/realm/authorize?"):  # of a real browser: its person is signed in here
                    q = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
                    self.send_response(302)
                    self.send_header("Location", q["redirect_uri"] + "?" + urllib.parse.urlencode({"code": provider.authorize(self.path), "state": q["state"]}))
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self.answer(*provider.get(self.path))

            def do_POST(self):
                provider.asked.append(self.path)
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self.answer(*provider.token(dict(urllib.parse.parse_qsl(form)), self.headers["Authorization"]))

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        self.issuer = f"http://127.0.0.1:{self.port}/realm"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        shutil.rmtree(self.dir)

    def get(self, path):
        if self.broken:
            return 500, {"error": "no"}
        if path == "/realm/.well-known/openid-configuration":
            return 200, {"issuer": self.issuer, "authorization_endpoint": self.issuer + "/authorize?tenant=1", "token_endpoint": self.issuer + "/token",
                         "jwks_uri": self.issuer + "/jwks", **self.document}
        if path == "/realm/jwks":
            return 200, {"keys": [{"kty": "oct", "k": "AAAA"}, {"kty": "RSA", "kid": "odd", "n": "", "e": "A="}] + [self.keys[k].jwk for k in self.published]}
        return 404, {"error": "not_found"}

    def authorize(self, url, change=None, sign=None, **claims):
        """The code for a person who has signed in; change(header, claims) before sign(data, key), or the key's own."""
        q = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
        code = secrets.token_hex(8)
        self.codes[code] = {"q": q, "claims": claims, "change": change, "sign": sign}
        return code

    def token(self, form, authorization):
        basic = "Basic " + base64.b64encode(f"{urllib.parse.quote(self.CLIENT, safe='')}:{urllib.parse.quote(self.SECRET, safe='')}".encode()).decode()
        known = authorization == basic or (form.get("client_id"), form.get("client_secret")) == (self.CLIENT, self.SECRET)
        if not known:
            return 401, {"error": "invalid_client"}
        code = self.codes.pop(form.get("code"), None)
        challenge = b64(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if form.get("grant_type") != "authorization_code" or code is None or form.get("redirect_uri") != code["q"]["redirect_uri"] or challenge != code["q"]["code_challenge"]:
            return 400, {"error": "invalid_grant", "error_description": "no"}
        return 200, {"access_token": "x", "token_type": "Bearer", "id_token": self.id_token(code)}

    def id_token(self, code):
        now = int(time.time())
        header = {"alg": "RS256", "kid": "rsa-1", "typ": "JWT"}
        claims = {"iss": self.issuer, "sub": "u-1", "aud": self.CLIENT, "exp": now + 300, "iat": now, "nonce": code["q"]["nonce"],
                  "preferred_username": "ada", "groups": ["drover-operator", "staff"], **code["claims"]}
        if code["change"]:
            code["change"](header, claims)
        data = f"{b64(json.dumps(header).encode())}.{b64(json.dumps(claims).encode())}".encode()
        key = self.keys.get(header.get("kid"), self.keys["rsa-1"])
        return data.decode() + "." + b64((code["sign"] or (lambda d, k: k.sign(d)))(data, key))


def hmac_with_public_key(data, key):
    """HS256 with the public key as its secret: what a checker falls for that lets the token choose the algorithm."""
    return hmac.new(key.public, data, hashlib.sha256).digest()
