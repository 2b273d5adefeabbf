// Talks to /v1 with the session cookie. Changes carry the CSRF value that login returned, and those that
// spend an Idempotency-Key that is kept over retries.

let csrf = null;

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `HTTP ${status}`);
    this.status = status;
    this.requestId = body.request_id;
    this.errors = body.errors || [];
  }
}

async function request(method, path, body, headers = {}) {
  const init = { method, headers: { accept: 'application/json', ...headers }, credentials: 'same-origin' };
  if (csrf && method !== 'GET') init.headers['X-Drover-CSRF'] = csrf;
  if (body !== undefined) {
    init.headers['content-type'] ||= 'application/json';
    init.body = typeof body === 'string' ? body : JSON.stringify(body);
  }
  const r = await fetch(`/v1${path}`, init);
  const text = await r.text();
  let value = {};
  try {
    value = text ? JSON.parse(text) : {};
  } catch {
    value = { detail: text.slice(0, 300) };
  }
  if (!r.ok) throw new Problem(r.status, value);
  return value;
}

export const get = (path) => request('GET', path);
export const post = (path, body = {}) =>
  request('POST', path, body, { 'Idempotency-Key': crypto.randomUUID() });

export async function login(token) {
  csrf = (await request('POST', '/login', { token })).csrf;
}

// True when a session stands already.
export async function resume() {
  try {
    csrf = (await get('/session')).csrf;
    return true;
  } catch (e) {
    if (e.status === 401 || e.status === 403) return false;
    throw e;
  }
}

// One stream a page; onEvent(kind, data), onState('live' | 'stale').
export function stream(path, onEvent, onState) {
  let source = null;
  let closed = false;
  const kinds = ['part.state', 'attempt.state', 'campaign.state', 'stage.state', 'operation.state', 'alert', 'resync'];
  const open = () => {
    if (closed || document.hidden) return;
    source = new EventSource(`/v1${path}`);
    source.onopen = () => onState('live');
    source.onerror = () => onState('stale');
    for (const kind of kinds) {
      source.addEventListener(kind, (e) => onEvent(kind, e.data ? JSON.parse(e.data) : {}));
    }
  };
  const visibility = () => {
    if (document.hidden) {
      source?.close();
      source = null;
    } else if (!source) {
      open();
      onEvent('resync', {});
    }
  };
  document.addEventListener('visibilitychange', visibility);
  open();
  return () => {
    closed = true;
    source?.close();
    document.removeEventListener('visibilitychange', visibility);
  };
}
