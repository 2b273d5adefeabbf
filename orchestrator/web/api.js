// Calls /v1 with the session cookie. Changes carry the CSRF value that login returned; those that
// spend money carry an Idempotency-Key that is kept over retries.

import { setWho } from './role.js';

const REPEATS = 4;
const REPEAT_MS = 500;
const READ_MS = 30000; // droverd gives up a read after 25 s; one without any answer would keep its page from the next
let csrf = null;
let onOut = () => {};
let heard = Date.now();
// When droverd was last heard: an answer, or an event of the stream.
export const heardAt = () => heard;
export const hear = () => { heard = Date.now(); };
// Sets the handler for a session that ends while the page is open.
export const whenOut = (f) => { onOut = f; };

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `HTTP ${status}`);
    this.status = status;
    this.requestId = body.request_id;
    this.errors = body.errors || [];
    this.code = body.code;
    this.campaign = body.campaign; // the one in the way
  }
}

// A request that changes nothing twice is repeated when its answer is lost: one that reads, and one with a key.
async function answer(path, init) {
  for (let left = init.headers['Idempotency-Key'] ? REPEATS : 0; ; left--) {
    try {
      const r = await fetch(path, init);
      hear();
      return r;
    } catch {
      if (left === 0) throw new Problem(0, { detail: 'droverd does not answer' });
      await new Promise((r) => setTimeout(r, REPEAT_MS));
    }
  }
}

// { r, text, value }: the answer, its text, and what that is as JSON.
async function call(method, path, body, headers = {}) {
  const init = { method, headers: { accept: 'application/json', ...headers }, credentials: 'same-origin' };
  if (method === 'GET') init.signal = AbortSignal.timeout(READ_MS);
  if (csrf && method !== 'GET') init.headers['X-Drover-CSRF'] = csrf;
  if (body !== undefined) {
    init.headers['content-type'] ||= 'application/json';
    init.body = typeof body === 'string' ? body : JSON.stringify(body);
  }
  const r = await answer(`/v1${path}`, init);
  const text = await r.text();
  let value;
  try {
    value = text ? JSON.parse(text) : {};
  } catch {
    value = { detail: text.slice(0, 300) };
  }
  if (r.status === 401 && csrf) {
    csrf = null;
    onOut();
  }
  if (!r.ok) throw new Problem(r.status, value);
  return { r, text, value };
}

const request = async (...of) => (await call(...of)).value;

export const get = (path) => request('GET', path);
// What is deleted with the parts of an archived campaign is null.
export async function unlessArchived(path) {
  try {
    return await get(path);
  } catch (e) {
    if (e.code === 'archived') return null;
    throw e;
  }
}
// A page is drawn without its forecast, too, and says why there is none.
export const forecastOf = (id, query = '') => unlessArchived(`/campaigns/${id}/forecast${query}`).catch((e) => ({ reason: e.message }));
export const del = (path) => request('DELETE', path);
// With the ETag that a change of it names.
export async function getTagged(path) {
  const { r, value } = await call('GET', path);
  return { value, etag: r.headers.get('etag') };
}
// What a model says to a text, as it is.
export const ask = async (path, text, type) => (await call('POST', path, text, { 'content-type': type, accept: '*/*' })).text;
// The key of one action: a second press repeats the same request.
export const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('');
export const post = (path, body = {}, key = newKey()) => request('POST', path, body, { 'Idempotency-Key': key });
// What makes another one each time it is sent: not repeated by itself.
export const postOnce = (path, body = {}) => request('POST', path, body);
export const patch = (path, body, etag, key = newKey()) => request('PATCH', path, body, { 'Idempotency-Key': key, 'If-Match': etag });
// Of what takes no key: not repeated, since a second one would be refused as late.
export const patchOnce = (path, body, etag) => request('PATCH', path, body, { 'If-Match': etag });
export const postYaml = (path, text, key = newKey()) =>
  request('POST', path, text, { 'Idempotency-Key': key, 'content-type': 'application/yaml' });

function begin(session) {
  csrf = session.csrf;
  setWho(session);
}

export async function login(token) {
  begin(await request('POST', '/login', { token }));
}

export async function logout() {
  await request('POST', '/logout', {});
}

// True when a session exists.
export async function resume() {
  try {
    begin(await get('/session'));
    return true;
  } catch (e) {
    if (e.status === 401 || e.status === 403) return false;
    throw e;
  }
}
