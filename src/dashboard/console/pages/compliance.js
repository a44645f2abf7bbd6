import { ask, isOwner, query } from '../api.js';
import { Dates, between } from '../dates.js';
import { html } from '../html.js';
import { Choice, Heading, Loaded, More, Table, Time, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { words } from '../words.js';
import { Identity } from './identity.js';
import { Law } from './law.js';
import { Person } from './person.js';
import { Retention } from './retention.js';

const text = words.compliance;

/** Changes what is asked for; all else in the address stays. */
const set = (changes) => go(to('compliance', '', { ...Object.fromEntries(place.value.query), ...changes }), { replace: true });

function told(value) {
  if (Array.isArray(value)) return value.join(', ');
  if (typeof value === 'boolean') return text.log.yesOrNo(value);
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** What is known beside: names and values. A request that nobody has answered has no status. */
const Details = ({ of }) => {
  const known = Object.entries(of).filter(([, value]) => value !== null);
  return known.length
    ? html`<ul class="plain-list">${known.map(([name, value]) => html`<li key=${name} class="wrap">${text.log.detail(name)}: ${told(value)}</li>`)}</ul>`
    : words.none;
};

/** What the API can tell apart. */
const ACTIONS = [
  'requested', 'member_added', 'role_changed', 'member_removed', 'invited', 'invitation_withdrawn', 'password_changed', 'password_set',
  'password_reset', 'password_reset_made', 'signed_out_everywhere', 'key_created', 'key_revoked', 'workspace_changed',
];

function Log() {
  const { filters } = text.log;
  const given = (name) => place.value.query.get(name) ?? '';
  const asked = { ...between(), action: given('action'), user_email: given('user_email') };
  const find = (event) => {
    event.preventDefault();
    set({ user_email: new FormData(event.target).get('user_email').trim() });
  };
  const path = `/t/${encodeURIComponent(place.value.slug)}/audit-log`;
  const pages = usePages((cursor) => ask('GET', path + query({ ...asked, cursor, limit: 50 })), Object.values(asked));
  const row = ({ id, at, user_email: email, action, subject, details }) => ({
    key: id,
    cells: [
      html`<${Time} of=${at} />`,
      html`<span class=${email ? 'wrap' : 'words'}>${email ?? text.log.operator}</span>`,
      html`<span class="words">${text.log.action(action)}</span>`,
      html`<span class="wrap">${subject}</span>`, html`<${Details} of=${details} />`,
    ],
  });
  return html`
    <div class="filters">
      <${Dates} set=${set} />
      <${Choice} id="action" label=${filters.action} value=${asked.action} options=${[['', filters.any], ...ACTIONS.map((name) => [name, text.log.action(name)])]}
        onChange=${(action) => set({ action })} />
      <form class="field" onSubmit=${find}>
        <label for="user_email">${filters.user_email}</label>
        <div class="with-button">
          <input id="user_email" name="user_email" type="search" maxlength="254" defaultValue=${asked.user_email} />
          <button class="button quiet">${text.log.show}</button>
        </div>
      </form>
    </div>
    <${Loaded} of=${pages}>${(entries) => entries.length
      ? html`<${Table} label=${text.log.title} columns=${Object.values(text.log.columns)} rows=${entries.map(row)} /><${More} next=${pages.next} />`
      : html`<p class="empty panel">${text.log.none}</p>`}<//>`;
}

export function Compliance() {
  // Typed into the address bar a + arrives as a blank.
  const asked = (place.value.query.get('person') ?? '').replace(/^ /, '+');
  return html`
    <${Heading} title=${text.title} />
    <${Person} asked=${asked} find=${(person) => set({ person })} />
    <${Law} />
    <${Identity} />
    <${Retention} />
    <section class="stack tight" aria-labelledby="log">
      <h2 id="log">${text.log.title}</h2>
      <p class="muted">${text.log.hint}</p>
      ${isOwner() ? html`<${Log} />` : html`<p class="muted">${text.log.ownersOnly}</p>`}
    </section>`;
}
