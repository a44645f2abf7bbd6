// Who agreed to be called or written to, and what proves it.
import { apiUrl, call, mayWrite, query } from '../api.js';
import { Area, Check, Checks, Field, FormDialog, Select } from '../form.js';
import { html, useState } from '../html.js';
import { Badge, Choice, Facts, Heading, Loaded, More, Table, Time, useLoad, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { someText } from '../values.js';
import { words } from '../words.js';
import { ImportDialog, ImportProgress } from './dnc_import.js';
import { Moment, momentOf } from './hours.js';
import { sentence, written } from './lines.js';

const text = words.consents;
const CHANNELS = ['phone', 'sms', 'email'];
const PURPOSES = ['marketing', 'service', 'debt', 'research', 'charity_political', 'emergency'];
const TIERS = ['express', 'express_written', 'opt_in_double', 'existing_contract'];
const STATUSES = ['valid', 'expired', 'revoked'];
/** Bytes of a file that proves a consent. */
const LARGEST = 10 * 1024 * 1024;
const FILES = '.pdf,.png,.jpg,.jpeg,.webp,.wav,.mp3,.ogg,.flac,.txt';
/** Imports that are looked at together: those of one file. */
const MOST_JOBS = 10;
/** Where the lists of an import go, and what is said of it. */
const IMPORT = { page: 'consents', path: '/consents/import', text: text.importing };

const whoOf = ({ phone_number: number, email }) => [number, email].filter(Boolean).join(', ');
const listed = (all, name) => new Intl.ListFormat('en').format(all.map(name));
const channelsOf = (channels) => (channels.length ? listed(channels, text.channel) : words.none);
const named = (who) => (who.includes('@') ? { email: who } : { phone_number: who });

const Status = ({ of }) => html`<${Badge} of=${{ valid: 'active', expired: 'canceled', revoked: 'failed' }[of]}>${text.status(of)}<//>`;

function bodyOf(values) {
  return {
    phone_number: written(values, 'phone_number'), email: written(values, 'email'), name: written(values, 'name'), seller: written(values, 'seller') ?? '',
    channels: values.getAll('channels'), purposes: values.getAll('purposes'), tier: values.get('tier'),
    covers_automated_voice: values.has('covers_automated_voice'), not_a_condition_of_purchase: values.has('not_a_condition_of_purchase'),
    method: written(values, 'method') ?? '', source_url: written(values, 'source_url'), request_copy: someText(values, 'request_copy'),
    contract_ref: written(values, 'contract_ref'), given_at: momentOf(values, 'given_at'), expires_at: momentOf(values, 'expires_at'),
  };
}

function Add({ close, done }) {
  const act = async (values) => { await done(await call('POST', '/consents', bodyOf(values))); };
  const { adding: said } = text;
  const named = (all, name) => all.map((one) => [one, words.plain(name(one))]);
  return html`
    <${FormDialog} title=${said.title} act=${act} submit=${said.submit} close=${close} isNarrow=${false}>
      <p>${said.text}</p>
      <${Field} name="phone_number" label=${said.number} hint=${said.numberHint} maxlength="40" autocomplete="off" />
      <${Field} name="email" label=${said.email} maxlength="254" autocomplete="off" />
      <${Field} name="name" label=${said.name} maxlength="200" autocomplete="off" />
      <${Field} name="seller" label=${said.seller} hint=${said.sellerHint} required maxlength="200" />
      <${Checks} name="channels" legend=${said.channels} options=${named(CHANNELS, text.channel)} />
      <${Checks} name="purposes" legend=${said.purposes} options=${named(PURPOSES, text.purpose)} chosen=${['marketing']} />
      <${Select} name="tier" label=${said.tier} hint=${said.tierHint} options=${named(TIERS, text.tier)} defaultValue="express_written" />
      <${Check} name="covers_automated_voice" label=${said.machine} hint=${said.machineHint} />
      <${Check} name="not_a_condition_of_purchase" label=${said.free} />
      <${Field} name="method" label=${said.method} hint=${said.methodHint} required maxlength="500" />
      <${Field} name="source_url" label=${said.page} type="url" maxlength="2000" />
      <${Area} name="request_copy" label=${said.copy} hint=${said.copyHint} maxlength="20000" rows="5" />
      <${Field} name="contract_ref" label=${said.contract} hint=${said.contractHint} maxlength="200" />
      <${Moment} name="given_at" label=${said.given} required />
      <${Moment} name="expires_at" label=${said.expires} hint=${said.expiresHint} />
    <//>`;
}

/** Asks once, and says what it means. */
function Revoke({ consent, close, done }) {
  const act = async (values) => {
    const asked = { reason: written(values, 'reason'), requested_at: momentOf(values, 'requested_at'), only_this: values.has('only_this') };
    await done(await call('POST', `/consents/${consent.id}/revoke`, asked));
  };
  return html`
    <${FormDialog} title=${text.revoking.title(whoOf(consent))} act=${act} submit=${text.revoking.submit} close=${close} isDanger>
      <p>${text.revoking.text}</p>
      <${Area} name="reason" label=${text.revoking.reason} maxlength="500" rows="2" />
      <${Moment} name="requested_at" label=${text.revoking.requested} hint=${text.revoking.requestedHint} />
      <${Check} name="only_this" label=${text.revoking.only} hint=${text.revoking.onlyHint} />
    <//>`;
}

function Evidence({ consent, close, done }) {
  const act = async (values) => {
    const file = values.get('file');
    if (file.size > LARGEST) throw Object.assign(new Error(text.proving.tooLarge), { param: 'file' });
    await done(await call('PUT', `/consents/${consent.id}/evidence`, file));
  };
  return html`
    <${FormDialog} title=${text.proving.title} act=${act} submit=${text.proving.submit} close=${close}>
      <p>${text.proving.text}</p>
      <${Field} name="file" type="file" accept=${FILES} label=${text.proving.file} hint=${text.proving.hint} required data-message=${text.proving.choose} />
    <//>`;
}

function Filters({ asked }) {
  const narrow = (values) => go(to('consents', '', { ...Object.fromEntries(place.value.query), ...asked, ...values }), { replace: true });
  const search = (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    narrow({ q: written(given, 'who'), seller: written(given, 'seller') });
  };
  const any = (name, all, one) => html`
    <${Choice} id=${name} label=${text.filters[name]} value=${asked[name]} options=${[['', text.filters.any], ...all.map((value) => [value, words.plain(one(value))])]}
      onChange=${(value) => narrow({ [name]: value })} />`;
  return html`
    <div class="filters">
      <form class="field" role="search" aria-label=${text.filters.who} onSubmit=${search}>
        <label for="find-consent">${text.filters.who}</label>
        <div class="with-button">
          <input id="find-consent" name="who" type="search" maxlength="254" defaultValue=${asked.q} />
          <input name="seller" type="search" maxlength="200" aria-label=${text.filters.seller} placeholder=${text.filters.seller} defaultValue=${asked.seller} />
          <button class="button quiet">${text.filters.button}</button>
        </div>
      </form>
      ${any('status', STATUSES, text.status)}${any('tier', TIERS, text.tier)}${any('purpose', PURPOSES, text.purpose)}
    </div>`;
}

export function Consents() {
  const { query: given, env } = place.value;
  const asked = Object.fromEntries(['q', 'seller', 'status', 'tier', 'purpose'].map((name) => [name, given.get(name) ?? '']));
  const { q, ...others } = asked;
  const jobs = given.get('import')?.split(',').filter(Boolean).slice(0, MOST_JOBS) ?? [];
  const load = (cursor) => call('GET', `/consents${query({ ...(q && named(q)), ...others, cursor, limit: 50 })}`);
  const pages = usePages(load, Object.values(asked));
  const [dialog, setDialog] = useState(null);
  const close = () => setDialog(null);
  const follow = (ids) => go(to('consents', '', { ...asked, import: ids?.join() }), { replace: true });
  const row = (consent) => ({
    key: consent.id,
    cells: [
      html`<a class="named wrap" href=${to('consents', consent.id)}>${whoOf(consent)}</a>`, html`<span class="wrap">${consent.seller}</span>`,
      words.plain(channelsOf(consent.channels)), words.plain(listed(consent.purposes, text.purpose)), words.plain(text.tier(consent.tier)),
      html`<${Time} of=${consent.given_at} />`, html`<${Status} of=${consent.status} />`,
    ],
  });
  return html`
    <${Heading} title=${text.title} />
    <p>${text.intro(words.env[env])}</p>
    ${mayWrite() && html`
      <div class="actions left">
        <button class="button" onClick=${() => setDialog('add')}>${text.add}</button>
        <button class="button quiet" onClick=${() => setDialog('load')}>${text.load}</button>
      </div>`}
    ${jobs.length > 0 && html`<${ImportProgress} key=${jobs.join()} ids=${jobs} of=${IMPORT} done=${pages.reload} close=${() => follow(null)} />`}
    <${Filters} asked=${asked} />
    <${Loaded} of=${pages}>${(consents) => consents.length
      ? html`<${Table} label=${text.title} columns=${Object.values(text.columns)} rows=${consents.map(row)} /><${More} next=${pages.next} />`
      : html`<p class="empty panel">${Object.values(asked).some(Boolean) ? text.none : text.empty}</p>`}<//>
    ${dialog === 'add' && html`<${Add} close=${close} done=${({ id }) => go(to('consents', id))} />`}
    ${dialog === 'load' && html`<${ImportDialog} into=${IMPORT} close=${close} done=${follow} />`}`;
}

const Copy = ({ title, of }) => of && html`<section class="stack tight"><h2>${title}</h2><pre class="panel wrap" tabindex="0" role="group" aria-label=${title}>${of}</pre></section>`;

function Proof({ consent, add }) {
  const { evidence } = consent;
  if (!evidence) {
    return html`<p>${text.proving.none}</p>${mayWrite() && html`<div class="actions left"><button class="button quiet" onClick=${add}>${text.proving.submit}</button></div>`}`;
  }
  return html`
    <${Facts} of=${[
      [text.facts.type, evidence.content_type], [text.facts.added, html`<${Time} of=${evidence.added_at} />`], [text.facts.by, evidence.added_by],
      [text.facts.sha256, html`<code class="wrap">${evidence.sha256}</code>`],
    ]} />
    <p><a href=${apiUrl(`/consents/${consent.id}/evidence`)} download>${text.proving.download}</a></p>`;
}

const Withdrawals = ({ of }) => of.length > 0 && html`
  <section class="stack tight"><h2>${text.withdrawals}</h2>
    <ul class="plain-list">${of.map(({ channel, at, by, reason }) => html`
      <li key=${channel} class="wrap">${words.plain(text.channel(channel))}, <${Time} of=${at} />: ${reason} <span class="hint">${by ?? text.byPerson}</span></li>`)}</ul>
  </section>`;

export function Consent({ id }) {
  const loaded = useLoad(() => call('GET', `/consents/${encodeURIComponent(id)}`), [id]);
  const [dialog, setDialog] = useState(null);
  const [warning, setWarning] = useState('');
  const close = () => setDialog(null);
  const done = async (consent) => {
    setWarning(consent.warning ? sentence(consent.warning) : '');
    await loaded.reload();
  };
  return html`
    <${Loaded} of=${loaded} isPage>${(consent) => html`
      <${Heading} title=${whoOf(consent)}><${Status} of=${consent.status} /><//>
      <p class="notice" role="status" hidden=${!warning}>${warning}</p>
      <${Facts} of=${[
        [text.facts.name, consent.name], [text.columns.seller, consent.seller], [text.columns.channels, words.plain(channelsOf(consent.channels))],
        [text.facts.standing, words.plain(channelsOf(consent.standing))], [text.columns.purposes, words.plain(listed(consent.purposes, text.purpose))],
        [text.columns.tier, words.plain(text.tier(consent.tier))], [text.facts.machine, text.yesOrNo(consent.covers_automated_voice)],
        [text.facts.free, text.yesOrNo(consent.not_a_condition_of_purchase)], [text.facts.method, consent.method], [text.facts.page, consent.source_url],
        [text.facts.ip, consent.source_ip], [text.facts.contract, consent.contract_ref], [text.columns.given, html`<${Time} of=${consent.given_at} />`],
        [text.facts.expires, consent.expires_at && html`<${Time} of=${consent.expires_at} />`],
        [text.facts.used, consent.last_used_at && html`<${Time} of=${consent.last_used_at} />`], [text.facts.kept, html`<${Time} of=${consent.kept_until} />`],
        [text.facts.recorded, html`<${Time} of=${consent.created_at} />`], [text.facts.by, consent.created_by],
      ]} />
      ${mayWrite() && consent.status !== 'revoked' && html`
        <div class="actions left"><button class="button quiet danger" onClick=${() => setDialog('revoke')}>${text.revoking.submit}</button></div>`}
      <${Withdrawals} of=${consent.withdrawals} />
      <section class="stack tight"><h2>${text.proving.heading}</h2><${Proof} consent=${consent} add=${() => setDialog('prove')} /></section>
      <${Copy} title=${text.facts.request} of=${consent.request_copy} /><${Copy} title=${text.facts.answer} of=${consent.consent_copy} />
      ${dialog === 'revoke' && html`<${Revoke} consent=${consent} close=${close} done=${done} />`}
      ${dialog === 'prove' && html`<${Evidence} consent=${consent} close=${close} done=${done} />`}`}<//>`;
}
