import { call, mayWrite, query } from '../api.js';
import { Area, Field, FormDialog, Select } from '../form.js';
import { count, percent, time } from '../format.js';
import { html, useState } from '../html.js';
import { everything } from '../lists.js';
import { useLive } from '../live.js';
import { Badge, Confirm, Facts, Heading, Loaded, More, Table, Time, useLoad, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { changesOf } from '../values.js';
import { words } from '../words.js';
import { AtOnce } from './at_once.js';
import { Incoming } from './incoming.js';
import { choices, inEnv, written } from './lines.js';
import { Tabs } from './pieces.js';
import { SendCode, VerifiedNumbers } from './verified_numbers.js';

const text = words.numbers;
const OTHERWISE = ['busy', 'reject', 'play_message'];

const concerns = ({ type }) => type.startsWith('session.') || type.startsWith('number.');

/** What a number can be given: `{ agents, trunks }`. */
const loadChoices = async () => {
  const [agents, trunks] = await Promise.all([everything('/agents'), everything('/sip_trunks')]);
  return { agents, trunks };
};

const Named = ({ page, id, among, none }) =>
  id ? html`<a href=${to(page, id)}>${among.find((one) => one.id === id)?.name ?? id}</a>` : html`<span class="muted">${none}</span>`;
const Use = ({ of: { status } }) => html`<${Badge} of=${status}>${text.use(status)}<//>`;

/** A number's settings, for one that is new and one that is there. */
function Settings({ number, given, isNew }) {
  const { inbound } = number;
  const otherwise = OTHERWISE.map((name) => [name, text.otherwise(name)]);
  return html`
    ${isNew && html`<${Field} name="phone_number" label=${text.fields.number} hint=${text.hints.number} type="tel" required maxlength="40" autocomplete="off" />`}
    <${Field} name="label" label=${text.fields.label} maxlength="200" defaultValue=${number.label ?? ''} />
    <${Select} name="agent_id" label=${text.fields.agent} hint=${text.hints.agent} options=${choices(given.agents, text.nobody)} defaultValue=${number.agent_id ?? ''} />
    <${Select} name="trunk_id" label=${text.fields.trunk} hint=${text.hints.trunk} options=${choices(given.trunks, text.noTrunk)} defaultValue=${number.trunk_id ?? ''} />
    <${Select} name="inbound.without_agent" label=${text.fields.withoutAgent} options=${otherwise} defaultValue=${inbound.without_agent ?? 'busy'} />
    <${Select} name="inbound.without_slot" label=${text.fields.withoutSlot} options=${otherwise} defaultValue=${inbound.without_slot ?? 'busy'} />
    <${Area} name="inbound.message" label=${text.fields.message} hint=${text.hints.message} maxlength="1000" rows="2" defaultValue=${inbound.message ?? ''} />
    <${Field} name="inbound.language" label=${text.fields.language} hint=${text.hints.language} maxlength="35" defaultValue=${inbound.language ?? ''} />
    <${Field} name="sms.registration_id" label=${text.fields.registration} hint=${text.hints.registration} maxlength="100" defaultValue=${number.sms?.registration_id ?? ''} />`;
}

const settingsOf = (values) => ({
  ...Object.fromEntries(['label', 'agent_id', 'trunk_id'].map((name) => [name, written(values, name)])),
  inbound: Object.fromEntries(['without_agent', 'without_slot', 'message', 'language'].map((name) => [name, written(values, `inbound.${name}`)])),
  sms: { registration_id: written(values, 'sms.registration_id') },
});

function Add({ given, close }) {
  const act = async (values) => {
    const made = await call('POST', '/numbers', { phone_number: written(values, 'phone_number'), ...settingsOf(values) });
    go(to('numbers', made.id));
  };
  return html`
    <${FormDialog} title=${text.adding} act=${act} submit=${text.add} close=${close}>
      <${Settings} number=${{ inbound: {} }} given=${given} isNew />
    <//>`;
}

function List() {
  const pages = usePages((cursor) => call('GET', `/numbers${query({ cursor, limit: 50 })}`), []);
  const given = useLoad(loadChoices, []);
  const [isAdding, setAdding] = useState(false);
  useLive(concerns, pages.reload, 10_000);
  const { agents = [], trunks = [] } = given.data ?? {};
  const row = (number) => ({
    key: number.id,
    cells: [
      html`<a class="number" href=${to('numbers', number.id)}>${number.phone_number}</a>`, number.label ? html`<span class="wrap">${number.label}</span>` : words.none,
      html`<${Named} page="agents" id=${number.agent_id} among=${agents} none=${text.nobody} />`,
      html`<${Named} page="trunks" id=${number.trunk_id} among=${trunks} none=${text.noTrunk} />`,
      html`<${Use} of=${number} />`, percent(number.answer_rate_24h),
    ],
  });
  return html`
    ${mayWrite() && html`<div class="actions left"><button class="button" disabled=${!given.data} onClick=${() => setAdding(true)}>${text.add}</button></div>`}
    ${given.error && html`<p class="error block" role="alert">${given.error.message}</p>`}
    <${Loaded} of=${pages}>${(numbers) => numbers.length
      ? html`<${Table} label=${text.title} columns=${Object.values(text.columns)} rows=${numbers.map(row)} /><${More} next=${pages.next} />`
      : html`<p class="empty panel">${text.empty}</p>`}<//>
    ${isAdding && html`<${Add} given=${given.data} close=${() => setAdding(false)} />`}`;
}

export function Numbers() {
  const view = place.value.query.get('show') === 'verified' ? 'verified' : '';
  return html`
    <${Heading} title=${text.title} />
    <${Tabs} label=${text.views.label} page="numbers" current=${view} tabs=${[['', text.views.own], ['verified', text.views.verified]]} />
    ${view ? html`<${VerifiedNumbers} />` : html`<${List} /><${AtOnce} />`}`;
}

async function load(id) {
  const path = `/numbers/${encodeURIComponent(id)}`;
  const [number, stats] = await Promise.all([call('GET', path), call('GET', `${path}/stats`)]);
  return { number, stats };
}

function Edit({ number, given, reload, close }) {
  // As it was when the form was opened: what somebody else changes meanwhile stays.
  const [before] = useState(number);
  const act = async (values) => {
    const patch = changesOf(before, settingsOf(values));
    if (patch) await call('PATCH', `/numbers/${before.id}`, patch);
    await reload();
  };
  return html`
    <${FormDialog} title=${text.editing(before.phone_number)} act=${act} submit=${words.save} close=${close}>
      <${Settings} number=${before} given=${given} />
    <//>`;
}

/** What may be done with a number, and what is asked before it. */
function Actions({ number, given, reload }) {
  const [dialog, setDialog] = useState(null);
  const close = () => setDialog(null);
  const remove = async () => {
    await call('DELETE', `/numbers/${number.id}`);
    go(to('numbers'));
  };
  return html`
    <div class="actions left">
      <button class="button" disabled=${!given} onClick=${() => setDialog('edit')}>${words.edit}</button>
      <button class="button quiet danger" onClick=${() => setDialog('remove')}>${words.remove}</button>
    </div>
    ${dialog === 'edit' && html`<${Edit} number=${number} given=${given} reload=${reload} close=${close} />`}
    ${dialog === 'remove' && html`
      <${Confirm} asks=${{ ...text.removing, title: text.removing.title(number.phone_number) }} act=${remove} close=${close} />`}`;
}

/** The last 24 hours. */
const Rate = ({ stats }) => html`
  <section class="stack tight" aria-labelledby="rate">
    <h2 id="rate">${text.rate.title}</h2>
    ${stats.calls + stats.blocked === 0 ? html`<p class="muted">${text.rate.none}</p>` : html`
      <${Facts} of=${[
        [text.rate.rate, percent(stats.answer_rate)],
        ...['calls', 'answered', 'no_agent', 'no_slot', 'abandoned', 'blocked'].map((name) => [text.rate.facts[name], count(stats[name])]),
        [text.rate.alarm, stats.last_alarm_at && html`<${Time} of=${stats.last_alarm_at} />`],
      ]} />`}
    <p class="hint">${stats.alarm_armed ? text.rate.armed : text.rate.disarmed}</p>
  </section>`;

/** How the calls went that showed it. */
const Shown = ({ health }) => html`
  <section class="stack tight" aria-labelledby="shown">
    <h2 id="shown">${text.shown.title}</h2>
    ${health.dialed === 0 ? html`<p class="muted">${text.shown.none}</p>` : html`
      <${Facts} of=${[
        [text.shown.facts.dialed, count(health.dialed)],
        [text.shown.facts.answered, `${count(health.answered)} (${percent(health.answer_rate)})`],
        [text.shown.facts.blocked, `${count(health.blocked)} (${percent(health.block_rate)})`],
      ]} />`}
    ${health.rests_until && html`<p class="error block" role="alert">${text.shown.rests(time(health.rests_until), text.shown.cause(health.rest_cause))}</p>`}
  </section>`;

/** How a number comes to be used live. */
const Live = ({ number, reload }) => html`
  <section class="stack tight" aria-labelledby="live">
    <h2 id="live">${text.live.title}</h2>
    <p>${text.live[number.status]}</p>
    ${number.status !== 'active' && (place.value.env === 'live'
      ? mayWrite() && html`<p>${text.live.how}</p><${SendCode} number=${number.phone_number} changed=${reload} />`
      : html`<p><a href=${inEnv('live')}>${text.live.there}</a></p>`)}
  </section>`;

function NumberPage({ id }) {
  const loaded = useLoad(() => load(id), [id]);
  const given = useLoad(loadChoices, []);
  useLive(concerns, loaded.reload, 5_000);
  const { agents = [], trunks = [] } = given.data ?? {};
  return html`
    <${Loaded} of=${loaded} isPage>${({ number, stats }) => html`
      <${Heading} title=${number.phone_number}><${Use} of=${number} /><//>
      ${given.error && html`<p class="error block" role="alert">${given.error.message}</p>`}
      ${mayWrite() && html`<${Actions} number=${number} given=${given.data} reload=${loaded.reload} />`}
      <${Facts} of=${[
        [text.fields.label, number.label],
        [text.fields.agent, html`<${Named} page="agents" id=${number.agent_id} among=${agents} none=${text.nobody} />`],
        [text.fields.trunk, html`<${Named} page="trunks" id=${number.trunk_id} among=${trunks} none=${text.noTrunk} />`],
        [text.fields.withoutAgent, text.otherwise(number.inbound.without_agent)],
        [text.fields.withoutSlot, text.otherwise(number.inbound.without_slot)],
        [text.fields.language, number.inbound.language],
        [text.fields.registration, number.sms.registration_id],
        [text.fields.added, html`<${Time} of=${number.created_at} />`],
      ]} />
      ${number.inbound.message && html`<p>${text.fields.message}${': '}<q class="wrap">${number.inbound.message}</q></p>`}
      <${Live} number=${number} reload=${loaded.reload} />
      <${Rate} stats=${stats} />
      <${Shown} health=${number.outbound_health} />
      ${place.value.env === 'test' && mayWrite() && html`<${Incoming} number=${number.phone_number} />`}`}<//>`;
}

// In this file `Number` is still the language's own.
export { NumberPage as Number };
