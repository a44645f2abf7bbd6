// The contacts of a campaign: who they are, what has become of them, and what may be done with one of them.
import { ApiError } from '../../common.js';
import { call, mayWrite, query } from '../api.js';
import { Field, FormDialog } from '../form.js';
import { count, nameOf, time } from '../format.js';
import { html, useId, useState } from '../html.js';
import { useLive } from '../live.js';
import { Badge, Choice, Confirm, Loaded, More, Note, Table, Time, useAct, useLoad, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { changesOf, numberOf, someText } from '../values.js';
import { words } from '../words.js';
import { Moment, Zone, momentOf } from './hours.js';
import { plain } from './imports.js';
import { LawRules } from './law.js';
import { Pairs } from './pairs.js';
import { Upload } from './upload.js';
import { linesOf, variablesOf } from './who.js';

const text = words.campaign;
export const CONTACT_STATUSES = ['pending', 'waiting', 'dispatched', 'completed', 'failed', 'skipped', 'canceled'];
/** Those that may be called once more, that may be changed, and that have never been called. */
const OVER = ['failed', 'skipped', 'canceled'];
const OPEN = ['pending', 'waiting'];
const wasReached = ({ last_session_id: session, last_message_id: message }) => Boolean(session || message);
const FILTERS = ['status', 'who', 'external_id'];
const TEXTS = ['phone_number', 'email', 'first_name', 'last_name', 'external_id', 'timezone'];
const NOBODY = { ...Object.fromEntries(TEXTS.map((name) => [name, null])), priority: 0, not_before: null, variables: {} };
/** Its events tell of a campaign; a session's tell of one of its calls. */
export const concerns = (id) => ({ data }) => data.campaign_id === id || data.id === id;

const isClosed = (rules) => rules.some(({ rule, verdict }) => rule === 'hours' && verdict !== 'yes');
const addressOf = ({ phone_number: number, email }) => number || email || words.none;
const titleOf = (contact) => (contact.erased ? text.erased : nameOf(contact) || addressOf(contact));

function Eligibility({ contact, campaign, close }) {
  const isPhone = campaign.channel === 'phone';
  const loaded = useLoad(() => call('GET', `/campaigns/${contact.campaign_id}/contacts/${contact.id}/eligibility`), [contact.id]);
  return html`
    <${Note} title=${text.whyOf(titleOf(contact), isPhone)} close=${close}>
      <${Loaded} of=${loaded}>${({ eligible, rules, zones, next_opening_at: opens, law, law_binding: binds }) => html`
        <p><strong>${(eligible ? text.eligible : text.notEligible)(isPhone)}</strong>${opens && isClosed(rules) && html` ${text.opens(time(opens))}`}</p>
        <ul class="rules">${rules.map(({ rule, verdict, until, skip_reason: reason }) => html`
          <li key=${rule}><span>${text.rule(rule)}</span>
            <span>${text.verdict[verdict] ?? words.plain(verdict)}${until && `, ${text.until(time(until))}`}${reason && `: ${text.skipped(reason)}`}</span></li>`)}</ul>
        ${zones.map(({ timezone, local_time: local }) => html`<p class="hint" key=${timezone}>${text.localTime(timezone, local.slice(0, 16).replace('T', ' '))}</p>`)}
        ${law.length > 0 && html`<h3>${words.compliance.law.contact}</h3>${!binds && html`<p class="hint">${words.compliance.law.observed}</p>`}<${LawRules} rules=${law} />`}`}<//>
    <//>`;
}

function Fields({ contact, channel }) {
  const isMail = channel === 'email';
  const field = (name, most, rest = {}) => html`<${Field} name=${name} label=${text.fields[name]} maxlength=${most} defaultValue=${contact[name] ?? ''} ...${rest} />`;
  return html`
    ${field('phone_number', 40, { type: 'tel', required: !isMail, autofocus: !isMail, hint: text.numberHint, 'data-message': text.needsNumber })}
    ${field('email', 254, { type: 'email', required: isMail, autofocus: isMail })}
    <div class="fields">${field('first_name', 200)}${field('last_name', 200)}</div>
    <details><summary>${text.moreFields}</summary><div class="stack">
      ${field('external_id', 200, { hint: text.idHint })}
      <div><${Zone} name="timezone" value=${contact.timezone} label=${text.fields.timezone} hint=${text.zoneHint} /></div>
      ${field('priority', 5, { type: 'number', min: -1000, max: 1000, hint: text.priorityHint })}
      <${Moment} name="not_before" value=${contact.not_before} label=${text.fields.not_before} />
      <${Pairs} name="variables" label=${text.fields.variables} defaultValue=${linesOf(contact.variables)} />
    </div></details>`;
}

/** What the fields say of a contact. */
const givenOf = (values, before) => ({
  ...Object.fromEntries(TEXTS.map((name) => [name, someText(values, name)])),
  priority: numberOf(values, 'priority') ?? 0,
  not_before: momentOf(values, 'not_before', before.not_before),
  variables: variablesOf(values, before.variables),
});

function Edit({ contact, campaign, reload, close }) {
  const act = async (values) => {
    const patch = changesOf(contact, givenOf(values, contact));
    if (patch) await call('PATCH', `/campaigns/${campaign.id}/contacts/${contact.id}`, patch);
    await reload();
  };
  return html`
    <${FormDialog} title=${text.editOf(titleOf(contact))} act=${act} submit=${words.save} close=${close}>
      <${Fields} contact=${contact} channel=${campaign.channel} /><//>`;
}

function Add({ campaign, reload, close }) {
  const act = async (values) => {
    const contact = Object.fromEntries(Object.entries(givenOf(values, NOBODY)).filter(([, value]) => value !== null));
    const { duplicates, rejected: [refused] } = await call('POST', `/campaigns/${campaign.id}/contacts`, { contacts: [contact] });
    if (refused) throw new ApiError(plain(refused.message), { param: refused.param });
    if (duplicates) throw new ApiError(text.isThere, { param: campaign.channel === 'email' ? 'email' : 'phone_number' });
    await reload();
  };
  return html`
    <${FormDialog} title=${text.addOne} act=${act} submit=${text.add} close=${close}><${Fields} contact=${NOBODY} channel=${campaign.channel} /><//>`;
}

/** By status, by number or address, by the workspace's own id: the address of the page says which. */
function Filters({ asked, set }) {
  const ids = [useId(), useId()];
  const find = (event) => {
    event.preventDefault();
    const values = new FormData(event.target);
    set({ who: values.get('who').trim(), external_id: values.get('external_id').trim() });
  };
  const statuses = [['', words.campaigns.any], ...CONTACT_STATUSES.map((name) => [name, words.status(name)])];
  const field = (name, id) => html`
    <div class="field"><label for=${id}>${text.find[name]}</label>
      <input id=${id} key=${asked[name]} name=${name} type="search" maxlength="254" placeholder=${text.find.example[name]} defaultValue=${asked[name]} /></div>`;
  return html`
    <form class="filters" role="search" aria-label=${text.find.label} onSubmit=${find}>
      <${Choice} id="status" label=${words.campaigns.filter} value=${asked.status} options=${statuses}
        onChange=${(status) => set({ status })} />
      ${field('who', ids[0])}${field('external_id', ids[1])}
      <button class="button quiet">${text.find.button}</button>
    </form>`;
}

/** As the API asks for it: an address has an @, and a number is written without what makes it readable. */
const reachedAt = (who) => (who.includes('@') ? { email: who } : { phone_number: who.replace(/[\s()./-]/g, '') });

export function Contacts({ campaign, reload }) {
  const asked = Object.fromEntries(FILTERS.map((name) => [name, place.value.query.get(name) ?? '']));
  const { status, who, external_id: own } = asked;
  const path = `/campaigns/${campaign.id}/contacts`;
  const load = (cursor) => call('GET', path + query({ status, ...reachedAt(who), external_id: own, cursor, limit: 50 }));
  const pages = usePages(load, [campaign.id, status, who, own]);
  const [open, setOpen] = useState(null);
  const [isUploading, setIsUploading] = useState(false);
  const [run, busy, error] = useAct();
  useLive(concerns(campaign.id), pages.reload);
  const all = () => Promise.all([pages.reload(), reload()]);
  const close = () => setOpen(null);
  const retry = (contact) => run(async () => { await call('POST', `${path}/${contact.id}/retry`, undefined); await pages.reload(); });
  const removal = (contact) => ({
    kind: Confirm, contact, asks: { ...text.confirmRemove, title: text.confirmRemove.title(titleOf(contact)) },
    act: async () => {
      await call('DELETE', `${path}/${contact.id}`);
      await all();
    },
  });
  const isPhone = campaign.channel === 'phone';
  const isOver = campaign.status === 'completed' || campaign.cancel_requested_at;
  const row = (contact) => {
    const { id, status: its, attempts, wait_reason: waits, skip_reason: skipped, skip_rule: rule, last_session_id: last, last_message_id: message } = contact;
    const button = (word, act, kind = '') => html`
      <button class="button quiet small ${kind}" disabled=${busy} aria-label="${word} (${titleOf(contact)})" onClick=${act}>${word}</button>`;
    const isWriter = mayWrite();
    return {
      key: id,
      cells: [
        nameOf(contact) || html`<span class="muted">${contact.erased ? text.erased : text.nameless}</span>`, html`<span class="wrap">${addressOf(contact)}</span>`,
        html`<${Badge} of=${its} />${waits && html` <span class="hint">${text.waits(waits)}</span>`}${skipped && html` <span class="hint">${text.skipped(skipped)}</span>`}${rule && html` <code class="wrap">${rule}</code>`}`,
        html`${count(attempts)}${last && html` <a href=${to('calls', last)}>${text.lastCall}</a>`}
          ${message && html` <a href=${to('messages', message, { kind: campaign.channel })}>${text.lastMessage}</a>`}`,
        html`<${Time} of=${contact.next_attempt_at} />`,
        html`<div class="row-actions">
          ${button(text.why(isPhone), () => setOpen({ kind: Eligibility, contact }))}
          ${isWriter && !isOver && OVER.includes(its) && !contact.erased && button(text.retry(isPhone), () => retry(contact))}
          ${isWriter && !isOver && OPEN.includes(its) && button(words.edit, () => setOpen({ kind: Edit, contact }))}
          ${isWriter && !isOver && its === 'pending' && !wasReached(contact) && button(words.remove, () => setOpen(removal(contact)), 'danger')}
        </div>`,
      ],
    };
  };
  return html`
    <section class="stack tight" aria-labelledby="contacts">
      <h2 id="contacts">${text.contacts}</h2>
      ${mayWrite() && !isOver && html`
        <div class="actions left">
          <button class="button quiet small" onClick=${() => setOpen({ kind: Add })}>${text.addOne}</button>
          <button class="button quiet small" aria-expanded=${isUploading} onClick=${() => setIsUploading(!isUploading)}>${text.upload}</button>
        </div>
        ${isUploading && html`<div class="panel upload"><${Upload} campaign=${campaign} done=${all} /></div>`}`}
      <${Filters} asked=${asked} set=${(part) => go(to('campaigns', campaign.id, { ...asked, ...part }), { replace: true })} />
      ${error && html`<p class="error block" role="alert">${error.message}</p>`}
      <${Loaded} of=${pages}>${(contacts) => contacts.length
        ? html`<${Table} label=${text.contacts} columns=${Object.values(text.columns)} rows=${contacts.map(row)} /><${More} next=${pages.next} />`
        : html`<p class="empty panel">${status || who || own ? text.noneSo : text.noContacts}</p>`}<//>
      ${open && html`<${open.kind} ...${open} campaign=${campaign} reload=${all} close=${close} />`}
    </section>`;
}
