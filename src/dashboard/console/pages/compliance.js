import { ask, call, isOwner, query } from '../api.js';
import { Dates, between } from '../dates.js';
import { html } from '../html.js';
import { Choice, Heading, Loaded, More, Table, Time, useLoad, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { words } from '../words.js';
import { Person } from './person.js';

const text = words.compliance;

/** Changes what is asked for; all else in the address stays. */
const set = (changes) => go(to('compliance', '', { ...Object.fromEntries(place.value.query), ...changes }), { replace: true });

/** In whole days, where it is some. */
const period = (seconds) => {
  const [unit, length] = [['day', 86_400], ['hour', 3_600], ['minute', 60], ['second', 1]].find(([, length]) => seconds % length === 0);
  return new Intl.NumberFormat(undefined, { style: 'unit', unit, unitDisplay: 'long' }).format(seconds / length);
};

function Retention() {
  const agents = usePages((cursor) => call('GET', `/agents${query({ cursor, limit: 100 })}`), []);
  const kept = useLoad(() => ask('GET', `/t/${encodeURIComponent(place.value.slug)}`), []);
  const { retention } = text;
  const row = ({ id, name, recording }) => ({
    key: id,
    cells: [
      html`<a class="wrap" href=${to('agents', id)}>${name}</a>`, retention.consent(recording.consent),
      recording.retention_days ? retention.days(recording.retention_days) : retention.forever,
    ],
  });
  return html`
    <section class="stack tight" aria-labelledby="retention">
      <h2 id="retention">${retention.title}</h2>
      <${Loaded} of=${kept}>${({ keeps_events_seconds: events, keeps_recordings_after_opt_out_seconds: afterOptOut }) => html`
        <${Table} label=${retention.title} columns=${Object.values(retention.columns)}
          rows=${retention.rows(period(events), period(afterOptOut)).map((cells) => ({ key: cells[0], cells }))} />`}<//>
    </section>
    <section class="stack tight" aria-labelledby="recordings">
      <h3 id="recordings">${retention.agents}</h3>
      <${Loaded} of=${agents}>${(all) => {
        const recorded = all.filter(({ recording }) => recording?.enabled);
        return html`
          ${recorded.length
            ? html`<${Table} label=${retention.agents} columns=${Object.values(retention.agentColumns)} rows=${recorded.map(row)} />`
            : html`<p class="muted">${retention.noAgents}</p>`}
          <${More} next=${agents.next} />`;
      }}<//>
      <p class="hint">${retention.override}</p>
    </section>`;
}

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
    <${Retention} />
    <section class="stack tight" aria-labelledby="log">
      <h2 id="log">${text.log.title}</h2>
      <p class="muted">${text.log.hint}</p>
      ${isOwner() ? html`<${Log} />` : html`<p class="muted">${text.log.ownersOnly}</p>`}
    </section>`;
}
