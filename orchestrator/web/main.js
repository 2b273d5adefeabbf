// The dashboard: log in once, then one page by address. / lists campaigns, /c/7 is campaign c-7.
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { html } from './html.js';
import { login, resume } from './api.js';
import { Campaign } from './campaign.js';
import { List } from './list.js';

function Login({ onIn }) {
  const [problem, setProblem] = useState(null);
  const submit = async (e) => {
    e.preventDefault();
    try {
      await login(new FormData(e.target).get('token').trim());
      onIn();
    } catch (p) {
      setProblem(p);
    }
  };
  return html`<main class="login"><form class="card" onSubmit=${submit}>
    <h1>drover</h1>
    <label>Token <input name="token" type="password" autocomplete="current-password" required autofocus/></label>
    <button class="primary">Log in</button>
    ${problem && html`<p class="problem" role="alert">${problem.message}</p>`}
    <p class="muted">The first admin token is in the file that DROVER_TOKEN_FILE names on the server.</p>
  </form></main>`;
}

function Page() {
  const m = /^\/c\/(?:c-)?(\d+)/.exec(location.pathname);
  if (m) return html`<${Campaign} id=${`c-${m[1]}`}/>`;
  return html`<${List}/>`;
}

function App() {
  const [state, setState] = useState('asking');
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    resume().then((ok) => setState(ok ? 'in' : 'out'), setProblem);
  }, []);
  if (problem) return html`<main><p class="problem" role="alert">droverd does not answer: ${problem.message}</p></main>`;
  if (state === 'asking') return null;
  return state === 'in' ? html`<${Page}/>` : html`<${Login} onIn=${() => setState('in')}/>`;
}

render(html`<${App}/>`, document.getElementById('app'));
