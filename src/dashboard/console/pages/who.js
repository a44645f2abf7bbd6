// Who calls or writes in a campaign, and with what: the first step of a new one. Fields have the names that the API gives them in its errors.
import { Area, Checks, Field, Select } from '../form.js';
import { html, useState } from '../html.js';
import { everything, voices } from '../lists.js';
import { Facts, Loaded, useLoad } from '../parts.js';
import { place, to } from '../place.js';
import { duration } from '../format.js';
import { changesOf, same, someText, textOf } from '../values.js';
import { words } from '../words.js';
import { AUDIENCES, PURPOSES } from './law.js';
import { Pairs, pairOf, pairsOf } from './pairs.js';

const text = words.newCampaign;
const law = words.compliance.law;
const CHANNELS = ['phone', 'sms', 'email'];
const VERTICALS = ['energy', 'energy_renovation', 'health', 'licensed'];
/** What a campaign is by law, if nothing is said of it. */
export const LEGAL = { purpose: 'marketing', audience: 'consumer', vertical: null, seller: null, subject: null, contract_ref: null };
const TEMPLATE = ['body', 'subject', 'text', 'html', 'from_name', 'reply_to'];

async function choices() {
  const [agents, numbers, all] = await Promise.all([everything('/agents'), everything('/numbers'), voices()]);
  return { agents, numbers, voices: all };
}

function Agent({ campaign, agents, voices: all }) {
  const [id, setId] = useState(campaign.agent_id ?? '');
  const agent = agents.find((one) => one.id === id);
  const options = agents.map((one) => [one.id, one.name]);
  if (id && !agent) options.push([id, id]);
  const nameOf = (voice) => all.find((one) => one.id === voice)?.name ?? voice;
  if (!options.length) return html`<p class="notice">${text.noAgents} <a href=${to('agents', 'new')}>${words.agents.fresh}</a></p>`;
  return html`
    <${Select} name="agent_id" label=${text.agent} options=${[['', text.choose], ...options]} defaultValue=${id} required data-message=${text.needsAgent}
      onChange=${({ target }) => setId(target.value)} />
    ${agent && html`<${Facts} of=${[
      [text.facts.language, agent.language], [text.facts.voice, agent.voice_id && nameOf(agent.voice_id)],
      [text.facts.longest, duration(agent.max_duration_seconds)],
      [text.facts.recording, agent.recording.enabled ? text.recorded(agent.recording.consent) : text.notRecorded],
    ]} />
    <p><a href=${to('agents', agent.id)}>${text.changeAgent}</a></p>`}
    <${Select} name="voice_id" label=${text.voice} options=${[['', text.agentsVoice], ...all.map((voice) => [voice.id, voice.name])]}
      defaultValue=${campaign.voice_id ?? ''} />`;
}

function Template({ template, channel }) {
  const value = (part) => template?.[part] ?? '';
  if (channel === 'sms') {
    return html`
      <${Area} name="template.body" label=${text.template.body} hint="${text.template.hint} ${text.template.signed}" rows="5" maxlength="1600" required defaultValue=${value('body')} />`;
  }
  return html`
    <${Field} name="template.subject" label=${text.template.subject} maxlength="200" required defaultValue=${value('subject')} />
    <${Area} name="template.text" label=${text.template.text} hint="${text.template.hint} ${text.template.unsubscribe}"
      rows="8" maxlength="100000" defaultValue=${value('text')} />
    <details><summary>${text.template.html}</summary>
      <${Area} name="template.html" label=${text.template.html} hint=${text.template.htmlHint} rows="8" maxlength="200000" spellcheck=${false}
        defaultValue=${value('html')} /></details>
    <div class="fields">
      <${Field} name="template.from_name" label=${text.template.from_name} maxlength="100" defaultValue=${value('from_name')} />
      <${Field} name="template.reply_to" label=${text.template.reply_to} type="email" maxlength="254" defaultValue=${value('reply_to')} />
    </div>`;
}

function Numbers({ campaign, numbers, channel }) {
  const { env } = place.value;
  const usable = numbers.filter(({ status }) => env === 'test' || status === 'active');
  const own = usable.map(({ phone_number: number, label }) => [number, label ? `${number} (${label})` : number]);
  const others = campaign.from_numbers.filter((number) => !own.some(([known]) => known === number)).map((number) => [number, number]);
  const all = [...own, ...others];
  if (!all.length) return html`<p class="hint">${text.noNumbers(env)} <a href=${to('numbers')}>${words.nav.numbers}</a></p>`;
  return html`
    <${Checks} name="from_numbers" legend=${text.numbers(channel)} options=${all} chosen=${campaign.from_numbers} />
    <p class="hint">${text.numbersHint}</p>`;
}

/** What it is by law: which rules are asked follows from it. */
function Legal({ campaign }) {
  const now = { ...LEGAL, ...campaign };
  const choices = (values, named) => values.map((value) => [value, named(value)]);
  return html`
    <div class="fields">
      <${Select} name="purpose" label=${law.purpose} options=${choices(PURPOSES, law.purposes)} defaultValue=${now.purpose} />
      <${Select} name="audience" label=${law.audience} options=${choices(AUDIENCES, law.audiences)} defaultValue=${now.audience} />
    </div>
    <details open=${Boolean(now.seller || now.subject || now.vertical || now.contract_ref)}><summary>${text.legal}</summary>
      <div class="stack">
        <div class="fields">
          <${Field} name="seller" label=${law.seller} hint=${law.sellerHint} maxlength="200" defaultValue=${now.seller ?? ''} />
          <${Field} name="subject" label=${law.subject} hint=${law.subjectHint} maxlength="200" defaultValue=${now.subject ?? ''} />
        </div>
        <div class="fields">
          <${Select} name="vertical" label=${law.vertical} options=${[['', law.noVertical], ...choices(VERTICALS, law.verticals)]} defaultValue=${now.vertical ?? ''} />
          <${Field} name="contract_ref" label=${law.contract} hint=${law.contractHint} maxlength="200" defaultValue=${now.contract_ref ?? ''} />
        </div>
      </div>
    </details>`;
}

const legalOf = (values) => (values.has('purpose') ? {
  purpose: values.get('purpose'), audience: values.get('audience'), vertical: values.get('vertical') || null,
  ...Object.fromEntries(['seller', 'subject', 'contract_ref'].map((name) => [name, someText(values, name)])),
} : {});

/** Whatever has not started may be changed; its channel as long as it has no contacts. */
export function Who({ campaign }) {
  const loaded = useLoad(choices, []);
  const [channel, setChannel] = useState(campaign.channel);
  const isFixed = campaign.counts.total > 0;
  return html`
    <${Field} name="name" label=${text.name} maxlength="200" required defaultValue=${campaign.name} data-message=${text.needsName} />
    <${Select} name="channel" label=${text.channel} hint=${isFixed ? text.channelFixed : ''} options=${CHANNELS.map((one) => [one, text.channels[one]])}
      defaultValue=${channel} disabled=${isFixed} onChange=${({ target }) => setChannel(target.value)} />
    <${Legal} campaign=${campaign} />
    <${Loaded} of=${loaded}>${(known) => html`
      ${channel === 'phone'
        ? html`<${Agent} campaign=${campaign} ...${known} />`
        : html`<${Template} key=${channel} template=${campaign.template} channel=${channel} />`}
      ${channel !== 'email' && html`<${Numbers} campaign=${campaign} numbers=${known.numbers} channel=${channel} />`}`}<//>
    <details open=${Object.keys(campaign.variables).length > 0 || Boolean(campaign.consent_basis)}><summary>${text.more}</summary>
      <div class="stack"><${Words} campaign=${campaign} /></div>
    </details>`;
}

/** One per line; what would not be read back as it is, such as several lines, can be written by the API only, and is kept. */
function isLine([name, value]) {
  const line = `${name} = ${value}`.trim();
  return typeof value !== 'object' && !/[\r\n]/.test(line) && same(pairOf(line), [name, String(value)]);
}
export const linesOf = (variables) => Object.entries(variables).filter(isLine).map(([name, value]) => `${name} = ${value}`).join('\n');

/** What may be changed at any time, too. */
export const Words = ({ campaign }) => html`
  <${Pairs} name="variables" label=${text.variables} defaultValue=${linesOf(campaign.variables)} />
  <${Area} name="consent_basis" label=${text.consent} hint=${text.consentHint} rows="2" maxlength="500"
    defaultValue=${campaign.consent_basis ?? ''} />`;

/** Those that are gone are null in a patch; what reads as before keeps its type. */
export function variablesOf(values, before) {
  const given = pairsOf(values, 'variables');
  const kept = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, String(before[name]) === value ? before[name] : value]));
  const gone = Object.entries(before).filter(isLine).filter(([name]) => !Object.hasOwn(given, name)).map(([name]) => [name, null]);
  return { ...Object.fromEntries(gone), ...kept };
}

export const wordsOf = (values, campaign) => ({
  name: textOf(values, 'name'), variables: variablesOf(values, campaign.variables), consent_basis: someText(values, 'consent_basis'),
});

function templateOf(values) {
  const parts = TEMPLATE.map((part) => [part, someText(values, `template.${part}`)]);
  return parts.some(([, value]) => value) ? Object.fromEntries(parts) : null;
}

/** What the fields say. Of what is not asked for nothing is said. */
export function whoOf(values, campaign) {
  const channel = values.get('channel') ?? campaign.channel;
  const hasTemplate = values.has('template.body') || values.has('template.subject');
  return changesOf({ ...LEGAL, ...campaign }, {
    ...wordsOf(values, campaign), ...legalOf(values), channel,
    ...(channel === 'phone' ? { template: null } : hasTemplate && { template: templateOf(values) }),
    ...(values.has('agent_id') && { agent_id: values.get('agent_id') || null }),
    ...(values.has('voice_id') && { voice_id: values.get('voice_id') || null }),
    ...((values.has('agent_id') || values.has('template.body')) && { from_numbers: values.getAll('from_numbers') }),
  });
}
