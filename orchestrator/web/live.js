// Keeps a page's data fresh: stream events trigger reads at least REFRESH_MS apart, a slow poll is
// the fallback, and while droverd does not answer the last data stay on screen.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { stream } from './stream.js';

const REFRESH_MS = 250; // one read answers all events in between
export const CURVES_MS = 2500; // of answers that the server makes every two seconds at most
const POLL_MS = 10000;
const BEHIND_MS = 700; // the server caches an expensive answer for a moment

// read() loads the data; it runs again when `keys` change, and soon when its result is `behind`.
// every: ms between two reads, at least. Returns { data, at, problem, load }.
export function useLive(path, read, keys, setLive, every = REFRESH_MS) {
  const [view, setView] = useState({ data: null, at: 0 });
  const [problem, setProblem] = useState(null);
  const run = useRef({ busy: false, again: false, serial: 0, timer: null });
  const newest = useRef(read);
  newest.current = read;
  const load = useCallback(async () => {
    const r = run.current;
    if (r.busy) {
      r.again = true;
      return;
    }
    r.busy = true;
    const serial = r.serial;
    try {
      const data = await newest.current();
      if (serial === r.serial) setView({ data, at: Date.now() });
      clearTimeout(r.timer);
      r.timer = data.behind ? setTimeout(load, BEHIND_MS) : null;
      setProblem(null);
    } catch (e) {
      setProblem(e);
    }
    r.busy = false;
    if (r.again) {
      r.again = false;
      setTimeout(load, serial === r.serial ? every : 0);
    }
  }, [every]);
  useEffect(() => {
    run.current.serial++;
    load();
  }, keys); // eslint-disable-line react-hooks/exhaustive-deps -- the caller's list; load never changes
  useEffect(() => {
    const r = run.current;
    let timer = null;
    const soon = () => {
      timer ||= setTimeout(() => { timer = null; load(); }, every);
    };
    const close = stream(path, soon, setLive);
    const poll = setInterval(load, POLL_MS);
    return () => { close(); clearInterval(poll); clearTimeout(timer); clearTimeout(r.timer); };
  }, [path, load, setLive, every]);
  return { ...view, problem, load };
}
