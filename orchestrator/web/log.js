// The newest lines of an attempt's log: find, first error, wrap, download. The server says what of a line is to be read
// (`shown`) and how bad it is (`level`).
import { useEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.js';
import { get } from './api.js';
import { save } from './csv.js';
import { clock, count, zone } from './format.js';

const LINES = 1000;
const AGAIN_MS = 5000; // AWS answers for few logs a second

const textOf = (l) => `${l.time ? clock(Date.parse(l.time)) : ''} ${l.host} ${l.shown || l.text}`;

// The text with what was looked for marked in it.
function Marked({ text, find }) {
  const at = find ? text.toLowerCase().indexOf(find.toLowerCase()) : -1;
  if (at < 0) return text;
  return html`${text.slice(0, at)}<mark>${text.slice(at, at + find.length)}</mark>${text.slice(at + find.length)}`;
}

// at: when its part was read last; live: its try has not ended, so that there may be more lines by then.
export function Log({ campaign, stage, seq, attempt, at, live }) {
  const [page, setPage] = useState(null);
  const [problem, setProblem] = useState(null);
  const [find, setFind] = useState('');
  const [wrap, setWrap] = useState(true);
  const [place, setPlace] = useState(-1);
  const box = useRef(null);
  const turn = live && Math.floor(at / AGAIN_MS);
  useEffect(() => { setPage(null); setProblem(null); }, [campaign, stage, seq, attempt]);
  useEffect(() => {
    let stale = false;
    get(`/campaigns/${campaign}/parts/${seq}/logs?stage=${encodeURIComponent(stage)}&attempt=${attempt}&limit=${LINES}`).then((p) => { if (!stale) { setPage(p); setProblem(null); } }, (e) => !stale && setProblem(e));
    return () => { stale = true; };
  }, [campaign, stage, seq, attempt, turn]);
  if (problem && !page) return html`<p class="problem" role="alert">${problem.message}</p>`;
  if (!page) return html`<p class="muted">reading the log …</p>`;
  const { lines } = page;
  const hits = find ? lines.map((l, i) => (textOf(l).toLowerCase().includes(find.toLowerCase()) ? i : -1)).filter((i) => i >= 0) : [];
  const error = lines.findIndex((l) => l.level === 'error');
  const jump = (i) => {
    setPlace(i);
    box.current.children[i]?.scrollIntoView({ block: 'center' });
  };
  const next = () => hits.length && jump(hits.find((i) => i > place) ?? hits[0]);
  const download = () => save(`${page.job_name}.log`, 'text/plain', lines.map((l) => `${l.time || ''} ${l.host} ${l.text}\n`).join(''));
  return html`<h3>Log of try ${attempt} <span class="muted">${lines.length === LINES ? `newest ${count(LINES)} lines` : `${count(lines.length)} ${lines.length === 1 ? 'line' : 'lines'}`}, times in ${zone}</span></h3>
    <div class="row log-tools">
      <input type="search" placeholder="Find" aria-label="find in the log" value=${find} onInput=${(e) => { setFind(e.target.value); setPlace(-1); }} onKeyDown=${(e) => e.key === 'Enter' && next()}/>
      ${find && html`<span class="muted" role="status">${count(hits.length)} found</span>`}
      <button disabled=${hits.length === 0} onClick=${next}>Next</button>
      <button id="first-error" disabled=${error < 0} onClick=${() => jump(error)}>First error</button>
      <button aria-pressed=${wrap} class="tab" onClick=${() => setWrap(!wrap)}>Wrap</button>
      <button disabled=${lines.length === 0} onClick=${download}>Download</button>
    </div>
    <pre class=${`log ${wrap ? '' : 'unwrapped'}`} tabindex="0" role="region" aria-label="log" ref=${box}>${
      lines.length ? lines.map((l, i) => html`<span key=${i} class=${`line ${l.level} ${i === place ? 'here' : ''}`}><${Marked} text=${textOf(l)} find=${find}/>${'\n'}</span>`) : 'no lines yet'}</pre>`;
}
