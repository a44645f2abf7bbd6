import { call, mayWrite } from '../api.js';
import { html, useEffect, useRef, useState } from '../html.js';
import { count, percent, time } from '../format.js';
import { Field, FormDialog } from '../form.js';
import { useEvery, useLive } from '../live.js';
import { Badge, Confirm, Facts, Heading, Loaded, Table, Time, useAct, useLoad } from '../parts.js';
import { go, to } from '../place.js';
import { changesOf } from '../values.js';
import { words } from '../words.js';
import { Log, useLog } from './deliveries.js';
import { EndpointFields, SecretDialog, eventsOf, knownOf, receives, settingsOf } from './endpoint_form.js';
import { localOf } from './hours.js';
import { sentence } from './lines.js';
import { Code, pretty, shortUrl } from './pieces.js';
import { healthOf, typesOf, waitingOf } from './webhooks.js';

const text = words.webhooks;
const A_DAY = 86_400;
const A_WEEK = 7 * A_DAY;
const PERIODS = ['last_24_hours', 'last_7_days'];

async function load(id) {
  const path = `/webhook_endpoints/${encodeURIComponent(id)}`;
  const [endpoint, stats, types] = await Promise.all([call('GET', path), call('GET', `${path}/stats`), typesOf()]);
  return { endpoint, stats, types };
}

function Edit({ endpoint, types, path, reload, close }) {
  // As it was when the form was opened: what somebody else changes meanwhile stays.
  const [before] = useState(endpoint);
  const act = async (values) => {
    const patch = changesOf(knownOf(before), settingsOf(values, before));
    if (patch) await call('PATCH', path, patch);
    await reload();
  };
  return html`
    <${FormDialog} title=${text.edit} act=${act} submit=${words.save} close=${close} isNarrow=${false}>
      <${EndpointFields} endpoint=${before} types=${types} />
    <//>`;
}

function Rotate({ path, reload, close }) {
  const act = async (values) => {
    const { secret } = await call('POST', `${path}/rotate_secret`, { overlap_seconds: Number(values.get('overlap_seconds')) });
    await reload();
    return secret;
  };
  return html`
    <${SecretDialog} title=${text.rotate.title} act=${act} submit=${text.rotate.submit} close=${close} done=${text.rotate.shown}>
      <p>${text.rotate.text}</p>
      <${Field} name="overlap_seconds" type="number" label=${text.rotate.overlap} hint=${text.rotate.overlapHint} min="0" max=${A_WEEK}
        required defaultValue=${A_DAY} />
    <//>`;
}

/** Since a day before the last success: what has arrived is not sent again. */
function sinceOf({ last_success_at: success, created_at: created }) {
  return new Date(Math.min(new Date(success ?? created) - A_DAY * 1000, Date.now() - A_DAY * 1000));
}

function Recover({ endpoint, path, reload, close }) {
  const moment = (value) => (value ? new Date(value).toISOString() : undefined);
  const act = async (values) => {
    await call('POST', `${path}/recover`, { since: moment(values.get('since')), until: moment(values.get('until')) });
    await reload();
  };
  return html`
    <${FormDialog} title=${text.recover.title} act=${act} submit=${text.recover.submit} close=${close}>
      <p>${text.recover.text}</p>
      <${Field} name="since" type="datetime-local" label=${text.recover.since} hint=${text.recover.sinceHint} required
        defaultValue=${localOf(sinceOf(endpoint))} />
      <${Field} name="until" type="datetime-local" label=${text.recover.until} hint=${text.recover.untilHint} />
    <//>`;
}

function TestResult({ result, close }) {
  const heading = useRef(null);
  useEffect(() => heading.current.focus(), [result]);
  const { delivered, status, duration_ms: duration, error_message: error, response_body: body } = result;
  return html`
    <section class="stack tight panel tools" aria-labelledby="test">
      <h2 id="test" ref=${heading} tabindex="-1">${delivered ? text.test.delivered : text.test.failed}</h2>
      ${error && html`<p class="error">${sentence(error)}</p>`}
      <${Facts} of=${[
        [text.test.status, status || text.test.noAnswer], [text.test.duration, text.delivery.ms(count(duration))],
        [text.test.event, html`<a href=${to('events', result.event_id)}>webhook.test</a>`],
      ]} />
      ${body ? html`<${Code} label=${text.delivery.responseBody} text=${pretty(body)} />` : html`<p class="hint">${text.test.noBody}</p>`}
      ${!delivered && status > 0 && html`<p>${text.test.refused} <a href=${to('webhooks', '', { show: 'verify' })}>${text.views.verify}</a></p>`}
      <div class="actions left"><button class="button quiet small" onClick=${close}>${words.close}</button></div>
    </section>`;
}

/** What may be done with an endpoint in its state. */
function Actions({ endpoint, open, types, reload }) {
  const [run, busy, error] = useAct();
  const [asks, setAsks] = useState(null);
  const [dialog, setDialog] = useState('');
  const [tested, setTested] = useState(null);
  const { status, url, previous_secret_expires_at: overlap } = endpoint;
  const path = `/webhook_endpoints/${endpoint.id}`;
  const close = () => setDialog('');
  const post = (verb) => async () => { await call('POST', `${path}/${verb}`, undefined); await reload(); };
  const set = (its) => async () => { await call('PATCH', path, { status: its }); await reload(); };
  const remove = async () => { await call('DELETE', path); go(to('webhooks'), { replace: true }); };
  const test = async () => { setTested(null); setTested(await call('POST', `${path}/test`, undefined)); await reload(); };
  const isPressed = useRef(false);
  // The button that was pressed may be gone by now.
  useEffect(() => {
    if (!isPressed.current || busy || asks || dialog) return;
    isPressed.current = false;
    if (document.activeElement === document.body) document.getElementById('title').focus({ preventScroll: true });
  });
  const pressed = (act) => () => {
    isPressed.current = true;
    act();
  };
  const ask = (name, act) => () => {
    const { title, text: what, ...buttons } = text[name].confirm;
    setAsks({ asks: { ...buttons, title: title(shortUrl(url)), text: what(waitingOf(open)) }, act });
  };
  const button = (word, act, kind = 'quiet') => html`<button class="button ${kind}" disabled=${busy} onClick=${pressed(act)}>${word}</button>`;
  const dialogs = { Edit, Rotate, Recover };
  return html`
    <div class="actions left" aria-busy=${busy}>
      ${status !== 'active' && button(text.enable, () => run(status === 'suspended' ? post('enable') : set('active')), '')}
      ${button(text.test.button, () => run(test), status === 'active' ? '' : 'quiet')}
      ${button(words.edit, () => setDialog('Edit'))}
      ${status === 'active' && button(text.recover.button, () => setDialog('Recover'))}
      ${button(text.rotate.button, () => setDialog('Rotate'))}
      ${overlap && button(text.revoke.button, ask('revoke', post('revoke_previous_secret')))}
      ${status !== 'disabled' && button(text.disable.button, ask('disable', set('disabled')), 'quiet danger')}
      ${button(words.remove, ask('remove', remove), 'quiet danger')}
      <span class="hint" role="status">${busy ? words.working : ''}</span>
    </div>
    ${error && html`<p class="error block" role="alert">${error.message}</p>`}
    ${tested && html`<${TestResult} result=${tested} close=${pressed(() => setTested(null))} />`}
    ${dialog && html`<${dialogs[dialog]} endpoint=${endpoint} types=${types} path=${path} reload=${reload} close=${close} />`}
    ${asks && html`<${Confirm} ...${asks} close=${() => setAsks(null)} />`}`;
}

/** `[line, is it bad?]`. */
function noticesOf(endpoint, open) {
  const { status, suspended_at: suspended, failure_streak: streak, paused_until: paused, previous_secret_expires_at: overlap } = endpoint;
  return [
    suspended && [text.suspended(time(suspended), count(streak)), true],
    status === 'disabled' && [text.disabled],
    paused && [text.pausedUntil(time(paused))],
    overlap && [text.overlap(time(overlap))],
    status === 'active' && open.held > 0 && [text.heldNow(count(open.held))],
  ].filter(Boolean);
}

function Statistics({ stats }) {
  const ms = (value) => (value === null ? words.none : text.delivery.ms(count(value)));
  const row = (name) => {
    const { attempts, success_rate: rate, failed_deliveries: failed, average_duration_ms: average, longest_duration_ms: longest } = stats[name];
    const cells = [text.stats.periods[name], count(attempts), percent(rate), count(failed), ms(average), ms(attempts ? longest : null)];
    return { key: name, cells };
  };
  const { oldest_due_at: oldest } = stats.open;
  return html`
    <section class="stack tight"><h2>${text.stats.title}</h2>
      <p>${text.stats.open} <strong>${waitingOf(stats.open) || text.stats.nothing}</strong>
        ${oldest && html`<span class="hint"> ${(new Date(oldest) > Date.now() ? text.stats.next : text.stats.oldest)(time(oldest))}</span>`}</p>
      <${Table} label=${text.stats.title} columns=${Object.values(text.stats.columns)} rows=${PERIODS.map(row)} />
      <p class="hint">${text.stats.hint}</p>
    </section>`;
}

/** How the latest recovery goes. Nobody knows beforehand how much it will find. */
const Recovery = ({ of: { status, since, until, released, replayed, ended_at: ended } }) => html`
  <section class="stack tight" aria-labelledby="recovery"><h2 id="recovery">${text.recovery.title} <${Badge} of=${status}>${text.recovery.status(status)}<//></h2>
    ${status === 'running' && html`<progress class="long" aria-label=${text.recovery.running}></progress>`}
    <p role="status">${text.recovery.found(released, replayed)}${status === 'stopped' ? ` ${text.recovery.stopped}` : ''}</p>
    <p class="hint">${text.recovery.span(time(since), time(until))}${ended ? ` ${text.recovery.ended(time(ended))}` : ''}</p>
  </section>`;

const factsOf = (endpoint) => [
  [text.facts.url, shortUrl(endpoint.url) === endpoint.url ? null : endpoint.url],
  [text.facts.description, endpoint.description && html`<span class="wrap">${endpoint.description}</span>`],
  [text.facts.events, eventsOf(endpoint)], [text.facts.streak, count(endpoint.failure_streak)],
  [text.facts.last, endpoint.last_status === null ? null : endpoint.last_status || text.test.noAnswer],
  [text.facts.success, endpoint.last_success_at ? html`<${Time} of=${endpoint.last_success_at} />` : words.never],
  [text.facts.secret, html`<code>whsec_…${endpoint.secret_hint}</code>`], [text.facts.timeout, text.delivery.ms(count(endpoint.timeout_ms))],
  [text.facts.concurrency, count(endpoint.max_concurrency)], [text.facts.ordering, text.facts.orderings[endpoint.ordering]],
  [text.facts.headers, endpoint.header_names.join(', ')], [text.facts.created, html`<${Time} of=${endpoint.created_at} />`],
  [text.facts.id, html`<code>${endpoint.id}</code>`],
];

export function Webhook({ id }) {
  const loaded = useLoad(() => load(id), [id]);
  const log = useLog(id);
  const reload = () => Promise.all([loaded.reload(), log.reload()]);
  // What is delivered here, and what becomes of the endpoint itself.
  const concerns = ({ type }) => type.startsWith('webhook.') || (loaded.data && receives(loaded.data.endpoint, type));
  useLive(concerns, reload, 5_000);
  useEvery(reload, 5_000, loaded.data?.stats.recovery?.status === 'running');
  return html`
    <${Loaded} of=${loaded} isPage>${({ endpoint, stats, types }) => {
      const [kind, label] = healthOf(endpoint);
      return html`
        <${Heading} title=${shortUrl(endpoint.url)}><${Badge} of=${kind}>${label}<//><//>
        ${noticesOf(endpoint, stats.open).map(([line, isBad]) => html`
          <p class=${isBad ? 'error block' : 'notice'} key=${line}>${line}</p>`)}
        ${mayWrite() && html`<${Actions} endpoint=${endpoint} open=${stats.open} types=${types} reload=${reload} />`}
        <${Facts} of=${factsOf(endpoint)} />
        ${stats.recovery && html`<${Recovery} of=${stats.recovery} />`}
        <${Statistics} stats=${stats} />
        <${Log} endpoint=${endpoint} types=${types} log=${log} />`;
    }}<//>`;
}
