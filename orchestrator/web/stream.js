// One event stream a browser: a browser gives one host six connections, and people open eight pages. Of the
// visible pages the one that holds a lock opens /v1/events and passes on what comes. Where a browser has no
// locks (http by another name than localhost), each page opens its own stream.

import { hear } from './api.js';

const KINDS = ['part.state', 'attempt.state', 'campaign.state', 'stage.state', 'operation.state', 'pool.state', 'endpoint.state', 'filesystem.state', 'alert', 'resync'];
const REOPEN_MS = 2000; // after an HTTP error a browser does not reopen a stream itself
const AT_ONCE_MS = 300; // a lock that came later was another page's before

// tell(kind, data): an event, or 'live', or 'stale'. Every reopening tells resync, so that missed events are read
// again. Returns what closes it.
function open(path, tell, missed) {
  let source = null;
  let timer = null;
  const begin = () => {
    const s = new EventSource(`/v1${path}`);
    source = s;
    s.onopen = () => {
      tell('live', {});
      if (missed) tell('resync', {});
      missed = true;
    };
    s.onerror = () => {
      tell('stale', {});
      if (s.readyState === EventSource.CLOSED && s === source) timer = setTimeout(begin, REOPEN_MS);
    };
    for (const kind of KINDS) s.addEventListener(kind, (e) => tell(kind, e.data ? JSON.parse(e.data) : {}));
  };
  begin();
  return () => {
    clearTimeout(timer);
    source.close();
    source = null;
  };
}

// What in this page listens: { campaign: 'c-1' or null for all, onEvent, onState }.
const listeners = new Set();

function deliver(kind, data) {
  if (kind === 'live' || kind === 'stale') {
    for (const l of listeners) {
      l.onState(kind);
      if (kind === 'stale') l.onEvent('lost', {}); // reading the data shows the user what is wrong
    }
    if (kind === 'live') hear();
    return;
  }
  hear();
  for (const l of listeners) {
    if (!l.campaign || !data.campaign || l.campaign === data.campaign) l.onEvent(kind, data);
  }
}

const pages = globalThis.BroadcastChannel && navigator.locks ? new BroadcastChannel('drover-events') : null;
let mine = null; // this page's wish for the stream: { abort, end }
let state = null; // of the stream, when this page has it

function spread(kind, data) {
  if (kind === 'live' || kind === 'stale') state = kind;
  deliver(kind, data);
  pages.postMessage({ kind, data });
}

function leave() {
  mine?.abort.abort();
  mine?.end?.();
  mine = null;
  state = null;
}

function join() {
  leave();
  if (document.hidden || !listeners.size) return;
  const me = { abort: new AbortController(), end: null };
  const asked = Date.now();
  mine = me;
  pages.postMessage({ kind: 'hello' });
  navigator.locks.request('drover-events', { signal: me.abort.signal }, () => (me === mine ? new Promise((done) => {
    const close = open('/events', spread, Date.now() - asked > AT_ONCE_MS);
    pages.postMessage({ kind: 'resync', data: {} });
    me.end = () => { close(); done(); };
  }) : null)).catch(() => {}); // the page was left before it had the lock
}

if (pages) {
  pages.onmessage = ({ data: { kind, data } }) => {
    if (kind === 'hello') {
      if (state) pages.postMessage({ kind: state, data: {} });
    } else if (!document.hidden) deliver(kind, data);
  };
  document.addEventListener('visibilitychange', () => {
    join();
    if (!document.hidden) deliver('resync', {});
  });
}

// As stream() below, with a stream of the page's own.
function alone(path, l) {
  let close = null;
  let opened = false;
  const visibility = () => {
    close?.();
    close = document.hidden ? null : open(path, (kind, data) => {
      if (kind === 'live' || kind === 'stale') l.onState(kind);
      if (kind === 'live') hear();
      else l.onEvent(kind === 'stale' ? 'lost' : kind, data);
    }, opened);
    opened = true;
  };
  document.addEventListener('visibilitychange', visibility);
  visibility();
  return () => {
    close?.();
    document.removeEventListener('visibilitychange', visibility);
  };
}

// Events of a path (/events or /campaigns/c-1/events) while the page is visible: onEvent(kind, data), and
// onState('live' | 'stale'). Returns what ends it.
export function stream(path, onEvent, onState) {
  const l = { campaign: path.match(/^\/campaigns\/([^/]+)/)?.[1], onEvent, onState };
  if (!pages) return alone(path, l);
  listeners.add(l);
  if (!mine) join();
  else if (state) onState(state);
  else pages.postMessage({ kind: 'hello' });
  return () => {
    listeners.delete(l);
    if (!listeners.size) leave();
  };
}
