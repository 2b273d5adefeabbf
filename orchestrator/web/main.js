// The dashboard: login, then one page per address: / lists campaigns, /c/7 is campaign c-7, /c/7/parts its parts, /c/7/scaling and
// /c/7/compare its training runs, /endpoints lists endpoints, /endpoints/NAME is one, /tokens and its neighbours are settings. droverd knows these (is_page in assets.c); any
// other is this page with status 404.
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { html } from './html.js';
import { get, heardAt, login, logout, resume, whenOut } from './api.js';
import { Audit } from './audit.js';
import { Bill } from './bill.js';
import { Campaign } from './campaign.js';
import { Compare } from './compare.js';
import { Endpoint, Endpoints } from './endpoints.js';
import { Filesystems } from './filesystems.js';
import { clock } from './format.js';
import { Keys } from './keys.js';
import { List } from './list.js';
import { Money } from './money.js';
import { Parts } from './parts.js';
import { Pools } from './pools.js';
import { Projects } from './projects.js';
import { Quotas } from './quotas.js';
import { RoleNote, me } from './role.js';
import { Scaling } from './scaling.js';
import { SETTINGS } from './settings.js';
import { Timeline } from './timeline.js';
import { Tokens } from './tokens.js';
import { Webhooks } from './webhooks.js';

function Login({ onIn }) {
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const [ways, setWays] = useState([]);
  useEffect(() => { get('/login').then((v) => setWays(v.ways), () => {}); }, []);
  const submit = async (e) => {
    e.preventDefault();
    setBusy(true);
    try {
      await login(new FormData(e.target).get('token').trim());
      onIn();
    } catch (p) {
      setProblem(p);
      setBusy(false);
    }
  };
  return html`<main class="login"><form class="card" onSubmit=${submit}>
    <h1><img src="/icon.svg" alt="" width="28" height="28"/> drover</h1>
    <label>Token <input name="token" type="password" autocomplete="current-password" required autofocus aria-describedby="token-help"/></label>
    <p class="muted" id="token-help">The first admin token is in the file that DROVER_TOKEN_FILE names on the server.</p>
    ${problem && html`<p class="problem" role="alert">${problem.message}</p>`}
    <button class="primary" disabled=${busy}>Log in</button>
    ${ways.map((w) => html`<a key=${w.path} class="button" href=${`${w.path}?return_to=${encodeURIComponent(location.pathname)}`}>Sign in ${w.kind === 'proxy' ? 'as' : 'with'} ${w.name}</a>`)}
  </form></main>`;
}

// The current address. One listener serves all pages, since they are few.
function usePath() {
  const [path, setPath] = useState(location.pathname);
  useEffect(() => {
    const look = () => setPath(location.pathname);
    addEventListener('popstate', look);
    return () => removeEventListener('popstate', look);
  }, []);
  return [path, (to) => { history.pushState(null, '', to); setPath(location.pathname); scrollTo(0, 0); }];
}

// Follow a link without a reload, unless the browser has another use for the click (new tab,
// download).
const inside = (go) => (e) => {
  const a = e.target.closest?.('a[href^="/"]');
  if (!a || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  e.preventDefault();
  go(a.getAttribute('href'));
};

const SILENT_MS = 20000; // the poll asks every 10 s
const SILENT_LOOK_MS = 1000;

// True while droverd has not been heard for SILENT_MS, also when its connections stay open.
function useSilent() {
  const [silent, setSilent] = useState(false);
  useEffect(() => {
    const timer = setInterval(() => setSilent(Date.now() - heardAt() > SILENT_MS), SILENT_LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  return silent;
}

function Chip({ live }) {
  const silent = useSilent();
  const good = live === 'live' && !silent;
  return html`<span class=${`chip ${good ? 'live' : 'stale'}`} id="live" role="status">${good ? '● live' : `○ stale · as of ${clock(heardAt())}`}</span>`;
}

function Lost({ path }) {
  useEffect(() => { document.title = 'not found · drover'; }, []);
  return html`<main id="lost"><h1>Nothing is here</h1>
    <p>No page has the address <code>${path}</code>. A campaign is at <code>/c/7</code>, its parts are at <code>/c/7/parts</code>.</p>
    <p class="row"><a class="button" href="/">All campaigns</a></p></main>`;
}

const TOP = { '/filesystems': Filesystems, '/pools': Pools, '/quotas': Quotas, '/bill': Bill, '/tokens': Tokens, '/webhooks': Webhooks, '/projects': Projects, '/audit': Audit };
// Address, name, and the letter that leads there after g.
const LINKS = [['/', 'Campaigns', 'c'], ['/endpoints', 'Endpoints', 'e'], ['/filesystems', 'File systems', 'f'], ['/pools', 'Pools', 'p'], ['/quotas', 'Quotas', 'q'], ['/bill', 'Bill', 'b']];
const PAGES = { undefined: Campaign, '/parts': Parts, '/scaling': Scaling, '/compare': Compare, '/timeline': Timeline, '/cost': Money };

function Shell({ onOut }) {
  const [path, go] = usePath();
  const [live, setLive] = useState('stale');
  const m = /^\/c\/(?:c-)?(\d+)(\/parts|\/scaling|\/compare|\/timeline|\/cost)?$/.exec(path);
  const of = /^\/endpoints(?:\/([\w-]+))?$/.exec(path);
  const Top = Object.hasOwn(TOP, path) ? TOP[path] : null;
  const lost = !m && !of && !Top && path !== '/';
  const settings = SETTINGS.some(([to]) => to === path);
  const here = of ? '/endpoints' : settings ? SETTINGS[0][0] : path;
  const out = async () => {
    await logout().catch(() => {});
    onOut();
  };
  return html`<div onClick=${inside(go)}>
    <header class="top"><div>
      <a class="brand" href="/"><img src="/icon.svg" alt="" width="20" height="20"/> drover</a>
      <nav aria-label="pages">${[...LINKS, [SETTINGS[0][0], 'Settings']].map(([to, name]) => html`<a key=${to} href=${to} aria-current=${to === here ? 'page' : null}>${name}</a>`)}</nav>
      ${!lost && html`<${Chip} live=${live}/>`}
      <${Keys} links=${[...LINKS, ...SETTINGS]} path=${path} go=${go}/>
      <span class="who" id="who"><b title=${me().name}>${me().name || me().token_id}</b> <span class="muted">${me().role}</span></span>
      <button class="link" onClick=${out}>log out</button>
    </div></header>
    <${RoleNote} needs=${settings ? 'admin' : 'operator'}/>
    ${lost ? html`<${Lost} path=${path}/>`
      : Top ? html`<${Top} key=${path} setLive=${setLive}/>`
      : m ? html`<${PAGES[m[2]]} key=${path} id=${`c-${m[1]}`} setLive=${setLive}/>`
        : of ? html`<${of[1] ? Endpoint : Endpoints} key=${path} id=${of[1]} setLive=${setLive}/>` : html`<${List} setLive=${setLive} go=${go}/>`}
  </div>`;
}

function App() {
  const [state, setState] = useState('asking');
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    whenOut(() => setState('out'));
    resume().then((ok) => setState(ok ? 'in' : 'out'), setProblem);
  }, []);
  if (problem) {
    return html`<main><h1>drover</h1><p class="problem" role="alert">${problem.message}</p>
      <p><button class="primary" onClick=${() => location.reload()}>Try again</button></p></main>`;
  }
  if (state === 'asking') return null;
  return state === 'in' ? html`<${Shell} onOut=${() => setState('out')}/>` : html`<${Login} onIn=${() => setState('in')}/>`;
}

render(html`<${App}/>`, document.getElementById('app'));
