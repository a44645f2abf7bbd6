// The rules of a campaign, as fields of a form: when, how fast, how often. They may be changed until it is over.
import { ask, call } from '../api.js';
import { Area, Check, Field, Select } from '../form.js';
import { html, useState } from '../html.js';
import { place } from '../place.js';
import { changesOf, numberOf, someText } from '../values.js';
import { words } from '../words.js';
import { Hours, scheduleOf } from './hours.js';

const text = words.rules;
const OUTCOMES = ['busy', 'no_answer', 'voicemail', 'failed'];

/** What the rules and the outlook need to know of the workspace. */
export async function surroundings() {
  const [workspace, concurrency, credits] = await Promise.all([
    ask('GET', `/t/${encodeURIComponent(place.value.slug)}`), call('GET', '/concurrency'), call('GET', '/credits'),
  ]);
  return { zone: workspace.timezone, pace: concurrency.calls_per_second, currency: credits.currency, credits: credits.available_cents };
}

const options = (values, named) => values.map((value) => [value, named[value]]);
const Count = ({ name, value, min, max, step = 1, ...rest }) => html`
  <${Field} type="number" inputmode="decimal" name=${name} defaultValue=${value ?? ''} min=${min} max=${max} step=${step} ...${rest} />`;

function Pace({ pacing, isPhone, most }) {
  return html`
    <div class="fields">
      <${Count} name="pacing.calls_per_second" label=${text.pace(isPhone)} hint=${text.paceHint(most)} value=${pacing.calls_per_second}
        min="0.1" max="10000" step="any" required />
      ${isPhone && html`
        <${Count} name="pacing.max_concurrency" label=${text.concurrency} hint=${text.concurrencyHint} value=${pacing.max_concurrency} min="1" max="100000" />`}
      <${Count} name="pacing.weight" label=${text.weight} hint=${text.weightHint} value=${pacing.weight} min="1" max="100" required />
      ${isPhone && html`
        <${Count} name="pacing.max_wait_seconds" label=${text.wait} hint=${text.waitHint} value=${pacing.max_wait_seconds} min="0" max="86400" />`}
    </div>`;
}

const pacingOf = (values, isPhone) => ({
  calls_per_second: numberOf(values, 'pacing.calls_per_second'),
  weight: numberOf(values, 'pacing.weight'),
  ...(isPhone && { max_concurrency: numberOf(values, 'pacing.max_concurrency'), max_wait_seconds: numberOf(values, 'pacing.max_wait_seconds') }),
});

function Exception({ outcome, rule }) {
  const name = `retry.rules.${outcome}`;
  const [kind, setKind] = useState(!rule ? 'plan' : rule.never ? 'never' : 'own');
  return html`
    <div class="stack tight">
      <${Select} name=${name} label=${text.after(outcome)} options=${options(['plan', 'never', 'own'], text.exceptions)} defaultValue=${kind}
        onChange=${({ target }) => setKind(target.value)} />
      ${kind === 'own' && html`
        <${Field} name="${name}.delays_minutes" label=${text.delays} hint=${text.delaysHint} defaultValue=${rule?.delays_minutes?.join(', ') ?? ''}
          pattern="[0-9,; ]*" data-message=${text.delaysHint} maxlength="100" inputmode="numeric" />
        <${Count} name="${name}.max_attempts" label=${text.fewer} value=${rule?.max_attempts} min="1" max="10" />`}
    </div>`;
}

function Retries({ retry, isPhone }) {
  return html`
    <div class="fields">
      <${Count} name="retry.max_attempts" label=${text.attempts(isPhone)} hint=${text.attemptsHint} value=${retry.max_attempts} min="1" max="10" required />
      <${Count} name="retry.min_gap_minutes" label=${text.gap} value=${retry.min_gap_minutes} min="0" max="10080" required />
    </div>
    <div class="fields">${(isPhone ? OUTCOMES : ['failed']).map((outcome) => html`
      <${Exception} key=${outcome} outcome=${outcome} rule=${retry.rules[outcome]} />`)}</div>`;
}

function exceptionOf(values, name) {
  if (values.get(name) === 'plan') return null;
  if (values.get(name) === 'never') return { never: true };
  const delays = (values.get(`${name}.delays_minutes`) ?? '').split(/[\s,;]+/).filter(Boolean).map(Number);
  return { never: false, delays_minutes: delays, max_attempts: numberOf(values, `${name}.max_attempts`) };
}

const retryOf = (values) => ({
  max_attempts: numberOf(values, 'retry.max_attempts'),
  min_gap_minutes: numberOf(values, 'retry.min_gap_minutes'),
  rules: Object.fromEntries(OUTCOMES.map((outcome) => [outcome, `retry.rules.${outcome}`]).filter(([, name]) => values.has(name))
    .map(([outcome, name]) => [outcome, exceptionOf(values, name)])),
});

function Caps({ caps, isPhone, currency }) {
  return html`
    <div class="fields">
      <${Count} name="caps.per_number_24h" label=${text.perDay(isPhone)} hint=${text.capHint} value=${caps.per_number_24h} min="1" max="1000" />
      <${Count} name="caps.per_number_7d" label=${text.perWeek(isPhone)} hint=${text.capHint} value=${caps.per_number_7d} min="1" max="1000" />
      <${Count} name="caps.campaign_per_day" label=${text.campaignPerDay(isPhone)} hint=${text.capHint} value=${caps.campaign_per_day}
        min="1" max="10000000" />
      <${Count} name="caps.budget_cents" label=${text.budget(currency)} hint=${text.budgetHint}
        value=${caps.budget_cents === null ? null : caps.budget_cents / 100} min="0" max="20000000" step="0.01" />
      <${Select} name="caps.on_cap" label=${text.onCap} options=${options(['defer', 'skip'], text.onCaps)} defaultValue=${caps.on_cap} />
    </div>`;
}

function capsOf(values) {
  const budget = numberOf(values, 'caps.budget_cents');
  return {
    per_number_24h: numberOf(values, 'caps.per_number_24h'), per_number_7d: numberOf(values, 'caps.per_number_7d'),
    campaign_per_day: numberOf(values, 'caps.campaign_per_day'), budget_cents: budget === null ? null : Math.round(budget * 100),
    on_cap: values.get('caps.on_cap'),
  };
}

function Voicemail({ voicemail }) {
  const [action, setAction] = useState(voicemail.action);
  return html`
    <div class="fields">
      <${Select} name="voicemail.detection" label=${text.detection} options=${options(['auto', 'off'], text.detections)} defaultValue=${voicemail.detection} />
      <${Select} name="voicemail.action" label=${text.action} options=${options(['hangup', 'leave_message', 'continue'], text.actions)}
        defaultValue=${action} onChange=${({ target }) => setAction(target.value)} />
    </div>
    ${action === 'leave_message' && html`
      <${Area} name="voicemail.message" label=${text.message} hint=${text.messageHint} rows="3" maxlength="1000" required
        defaultValue=${voicemail.message ?? ''} />
      <${Check} name="voicemail.counts_as_reached" label=${text.reached} defaultChecked=${voicemail.counts_as_reached} />`}`;
}

const voicemailOf = (values) => ({
  detection: values.get('voicemail.detection'), action: values.get('voicemail.action'),
  // What is not asked for at the moment stays as it is.
  ...(values.has('voicemail.message')
    && { message: someText(values, 'voicemail.message'), counts_as_reached: values.has('voicemail.counts_as_reached') }),
});

const Part = ({ title, children }) => html`<section class="stack part"><h3>${title}</h3>${children}</section>`;

/** `about`: the workspace's zone, money, and pace. */
export function Rules({ campaign, about }) {
  const isPhone = campaign.channel === 'phone';
  return html`
    <${Part} title=${text.parts.hours}><${Hours} schedule=${campaign.schedule} zone=${about.zone} isArmed=${campaign.armed} /><//>
    <${Part} title=${text.parts.pace}><${Pace} pacing=${campaign.pacing} isPhone=${isPhone} most=${about.pace} /><//>
    <${Part} title=${text.parts.retries}><${Retries} retry=${campaign.retry} isPhone=${isPhone} /><//>
    <${Part} title=${text.parts.caps}><${Caps} caps=${campaign.caps} isPhone=${isPhone} currency=${about.currency} /><//>
    ${isPhone && html`<${Part} title=${text.parts.voicemail}><${Voicemail} voicemail=${campaign.voicemail} /><//>`}`;
}

/** What the fields say, as a merge patch; null: as it is. */
export function rulesOf(values, campaign) {
  const isPhone = campaign.channel === 'phone';
  return changesOf(campaign, {
    schedule: scheduleOf(values, campaign.schedule), pacing: pacingOf(values, isPhone), retry: retryOf(values), caps: capsOf(values),
    ...(isPhone && { voicemail: voicemailOf(values) }),
  });
}
