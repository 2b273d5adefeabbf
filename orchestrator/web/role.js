// Who asks and what that allows. A button that takes another role is there, disabled, and says which one.
import { html } from './html.js';

const RANKS = ['viewer', 'operator', 'admin'];
const WHO = { viewer: 'a viewer', operator: 'an operator', admin: 'an admin' };
let who = { name: '', role: 'viewer', projects: null };

// Set by api.js from the answer of the session.
export const setWho = (session) => { who = session; };
export const me = () => who;
export const may = (role) => RANKS.indexOf(who.role) >= RANKS.indexOf(role);
// Why a button is disabled; '' when it is not.
export const whyNot = (role) => (may(role) ? '' : `This takes ${WHO[role]}; you are ${WHO[who.role]}.`);

// A button that changes something. needs: the role that it takes.
export function Act({ needs = 'operator', disabled, children, ...rest }) {
  const why = whyNot(needs);
  return html`<button ...${rest} disabled=${disabled || !!why} ...${why ? { title: why, 'aria-describedby': 'role-note' } : {}}>${children}</button>`;
}

// Said once a page, above it; what disabled buttons refer to. needs: the role that the page's buttons take.
export function RoleNote({ needs }) {
  return !may(needs) && html`<aside class="role-note" aria-label="your role"><p id="role-note"><b>${who.role}</b> What changes something is disabled here: it takes ${WHO[needs]}, and you are ${WHO[who.role]}.</p></aside>`;
}
