# The dashboard test runs campaigns against the demo's web.
test-bins: demo
