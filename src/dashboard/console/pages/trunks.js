import { call, mayWrite, query } from '../api.js';
import { Form } from '../form.js';
import { count, decimal } from '../format.js';
import { html, useState } from '../html.js';
import { everything } from '../lists.js';
import { useEvery } from '../live.js';
import { Badge, Confirm, Facts, Heading, Loaded, More, Note, Table, Time, useAct, useLoad, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { changesOf } from '../values.js';
import { words } from '../words.js';
import { inEnv, sentence } from './lines.js';
import { Inputs, Settings, inWords, knownOf, settingsOf } from './trunk_settings.js';
import { Stands, Targets, answerOf, linesOf, meaningOf } from './trunk_state.js';

const text = words.trunks;
/** Calls in which refused ones are looked for, and how many of them are shown. */
const [LOOKED_AT, SHOWN] = [100, 10];

const isAsked = (name) => place.value.query.get('show') === name;

export function Trunks() {
  return isAsked('new') && mayWrite() ? html`<${New} />` : html`<${List} />`;
}

const slots = ({ state: { in_use: inUse }, max_concurrency: most }) => (most === null ? count(inUse) : text.inUse(count(inUse), count(most)));

function List() {
  const pages = usePages((cursor) => call('GET', `/sip_trunks${query({ cursor, limit: 50 })}`), []);
  // No event tells of a peer.
  useEvery(pages.reload, 5_000);
  const row = (trunk) => ({
    key: trunk.id,
    cells: [
      html`<a class="named" href=${to('trunks', trunk.id)}>${trunk.name}</a>`, html`<span class="wrap">${trunk.host}</span> ${text.options.transport[trunk.transport]}`,
      html`<${Stands} trunk=${trunk} />${linesOf(trunk).slice(0, 1).map(([, line]) => html` <span class="hint">${line}</span>`)}`,
      slots(trunk), decimal(trunk.state.calls_per_second),
    ],
  });
  return html`
    <${Heading} title=${text.title} />
    ${mayWrite() && html`<div class="actions left"><a class="button" href=${to('trunks', '', { show: 'new' })}>${text.add}</a></div>`}
    <${Loaded} of=${pages}>${(trunks) => trunks.length
      ? html`<${Table} label=${text.title} columns=${Object.values(text.columns)} rows=${trunks.map(row)} /><${More} next=${pages.next} />`
      : html`<p class="empty panel">${text.empty}</p>`}<//>`;
}

function New() {
  const act = async (values) => {
    const made = await call('POST', '/sip_trunks', settingsOf(values));
    go(to('trunks', made.id));
  };
  return html`
    <${Heading} title=${text.adding} />
    <p>${text.addingHint}</p>
    <${Form} act=${act} submit=${text.add} leave=${() => go(to('trunks'))}><${Inputs} trunk=${{}} /><//>`;
}

function Edit({ trunk, reload }) {
  const leave = () => go(to('trunks', trunk.id));
  // As it was when the form was opened: what somebody else changes meanwhile stays.
  const [before] = useState(trunk);
  const act = async (values) => {
    const patch = changesOf(knownOf(before), settingsOf(values));
    if (patch) await call('PATCH', `/sip_trunks/${before.id}`, patch);
    await reload();
    leave();
  };
  return html`
    <${Heading} title=${text.editing(before.name)} />
    <p>${text.editingHint}</p>
    <${Form} act=${act} submit=${words.save} leave=${leave}><${Inputs} trunk=${before} /><//>`;
}

/** One answer of the peer, or why there was none. */
const Answer = ({ isGood, said: { status_code: code, reason, rtt_ms: took, error, advice } }) => html`
  <p><${Badge} of=${isGood ? 'active' : 'failed'}>${isGood ? text.test.good : text.test.bad}<//> ${error
    ? sentence(error.message)
    : text.test.answered(answerOf({ sip_code: code, reason }), took)}</p>
  ${advice && html`<p>${sentence(inWords(advice))}</p>`}`;

function Test({ trunk, close }) {
  const asked = useLoad(() => call('POST', `/sip_trunks/${trunk.id}/test`, undefined), [trunk.id]);
  return html`
    <${Note} title=${text.test.title(trunk.name)} close=${close}>
      ${!asked.data && !asked.error && html`<p role="status">${text.test.asking}</p>`}
      ${(asked.data || asked.error) && html`
        <${Loaded} of=${asked}>${(said) => html`
          <div role="status" class="stack tight">
            <h3>${text.test.options}</h3><${Answer} isGood=${said.reachable} said=${said} />
            ${said.register && html`<h3>${text.test.register}</h3><${Answer} isGood=${said.register.accepted} said=${said.register} />`}
          </div>`}<//>`}
    <//>`;
}

function Actions({ trunk, reload }) {
  const [run, busy, error] = useAct();
  const [dialog, setDialog] = useState(null);
  const pause = (paused) => run(async () => {
    await call('PATCH', `/sip_trunks/${trunk.id}`, { paused });
    await reload();
  });
  const remove = async () => {
    await call('DELETE', `/sip_trunks/${trunk.id}`);
    go(to('trunks'));
  };
  const tested = () => {
    setDialog(null);
    reload();
  };
  return html`
    <div class="actions left">
      <button class="button" onClick=${() => setDialog('test')}>${text.test.button}</button>
      <button class="button quiet" disabled=${busy} onClick=${() => pause(!trunk.paused)}>${trunk.paused ? text.resume : text.pause}</button>
      <a class="button quiet" href=${to('trunks', trunk.id, { show: 'edit' })}>${words.edit}</a>
      <button class="button quiet danger" onClick=${() => setDialog('remove')}>${words.remove}</button>
    </div>
    ${error && html`<p class="error block" role="alert">${error.message}</p>`}
    ${dialog === 'test' && html`<${Test} trunk=${trunk} close=${tested} />`}
    ${dialog === 'remove' && html`
      <${Confirm} asks=${{ ...text.removing, title: text.removing.title(trunk.name) }} act=${remove} close=${() => setDialog(null)} />`}`;
}

/** Calls that the peer has refused, and what it has said. */
const loadRefusals = async (id) => {
  const { data } = await call('GET', `/sessions${query({ status: 'failed', limit: LOOKED_AT })}`);
  return data.filter(({ trunk_id: trunk, error }) => trunk === id && error?.sip_code).slice(0, SHOWN);
};

function Refusals({ id }) {
  const loaded = useLoad(() => loadRefusals(id), [id]);
  const row = ({ id: session, created_at: at, phone_number: number, error: { sip_code: code, message } }) => ({
    key: session,
    cells: [
      html`<${Time} of=${at} />`, html`<a class="number" href=${to('calls', session)}>${number ?? text.refusals.call}</a>`,
      html`<span class="wrap">${sentence(message)}</span>`, meaningOf(code, message),
    ],
  });
  return html`
    <section class="stack tight" aria-labelledby="refusals">
      <h2 id="refusals">${text.refusals.title}</h2>
      <${Loaded} of=${loaded}>${(calls) => calls.length
        ? html`<${Table} label=${text.refusals.title} columns=${Object.values(text.refusals.columns)} rows=${calls.map(row)} />`
        : html`<p class="muted">${text.refusals.none(LOOKED_AT)}</p>`}<//>
      ${place.value.env === 'test' && html`<p class="hint">${text.refusals.test} <a href=${inEnv('live')}>${text.refusals.live}</a></p>`}
    </section>`;
}

/** Loaded when it is opened: the API knows a number's trunk, and not a trunk's numbers. */
function UsedBy({ id }) {
  const [isOpen, setOpen] = useState(false);
  return html`
    <details onToggle=${({ target }) => setOpen(target.open)}><summary>${text.usedBy.title}</summary>
      ${isOpen && html`<${Users} id=${id} />`}
    </details>`;
}

function Users({ id }) {
  const loaded = useLoad(async () => (await everything('/numbers')).filter(({ trunk_id: trunk }) => trunk === id), [id]);
  return html`
    <${Loaded} of=${loaded}>${(numbers) => numbers.length
      ? html`<ul class="linked">${numbers.map(({ id: number, phone_number: phone, label }) => html`
          <li key=${number}><a href=${to('numbers', number)}>${phone}</a>${label && html` <span class="wrap muted">${label}</span>`}</li>`)}</ul>`
      : html`<p class="muted">${text.usedBy.none}</p>`}<//>`;
}

export function Trunk({ id }) {
  const loaded = useLoad(() => call('GET', `/sip_trunks/${encodeURIComponent(id)}`), [id]);
  const isEdited = isAsked('edit') && mayWrite();
  useEvery(loaded.reload, 5_000, !isEdited);
  return html`
    <${Loaded} of=${loaded} isPage>${(trunk) => isEdited ? html`<${Edit} trunk=${trunk} reload=${loaded.reload} />` : html`
      <${Heading} title=${trunk.name}><${Stands} trunk=${trunk} /><//>
      ${linesOf(trunk).map(([isBad, line]) => html`<p class=${isBad ? 'error block' : 'notice'} role=${isBad ? 'alert' : undefined} key=${line}>${line}</p>`)}
      ${mayWrite() && html`<${Actions} trunk=${trunk} reload=${loaded.reload} />`}
      <${Facts} of=${[
        [text.facts.inUse, slots(trunk)], [text.facts.rate, decimal(trunk.state.calls_per_second)],
        [text.facts.tested, trunk.tested_at ? html`${text.tested[trunk.status]}, <${Time} of=${trunk.tested_at} />` : text.tested.untested],
        [text.facts.created, html`<${Time} of=${trunk.created_at} />`], [text.facts.changed, html`<${Time} of=${trunk.updated_at} />`],
      ]} />
      <${UsedBy} id=${id} />
      <${Refusals} id=${id} />
      <${Targets} of=${trunk.state.targets} />
      <${Settings} trunk=${trunk} />`}<//>`;
}
