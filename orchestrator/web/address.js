// What a page shows is in its address, so that it can be sent to a colleague.
import { useEffect, useState } from 'preact/hooks';

const read = (fields) => {
  const q = new URLSearchParams(location.search);
  return Object.fromEntries(fields.map((f) => [f, q.get(f) || '']));
};

// fields: names in the query, the same list at each call. Returns their values ('' when absent) and move(values), which changes the address.
export function useQuery(fields) {
  const [at, setAt] = useState(() => read(fields));
  useEffect(() => {
    const look = () => setAt(read(fields));
    addEventListener('popstate', look);
    return () => removeEventListener('popstate', look);
  }, [fields]);
  const move = (change) => {
    const now = { ...at, ...change };
    const q = new URLSearchParams(fields.filter((f) => now[f]).map((f) => [f, now[f]]));
    const address = location.pathname + (q.toString() && `?${q}`);
    if (address !== location.pathname + location.search) history.pushState(null, '', address);
    setAt(now);
  };
  return [at, move];
}
