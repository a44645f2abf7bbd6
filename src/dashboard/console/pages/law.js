// The law, as the pack knows it: what it would say of a call or a message anywhere, on any day; what it keeps from being reached; its rules.
import { call, query } from '../api.js';
import { Field, Form, Select } from '../form.js';
import { count, time } from '../format.js';
import { html, useId, useState } from '../html.js';
import { Heading, Loaded, Table, Time, useLoad } from '../parts.js';
import { go, place, to } from '../place.js';
import { words } from '../words.js';

const text = words.compliance.law;
export const PURPOSES = ['marketing', 'service', 'debt', 'research', 'charity_political', 'emergency'];
export const AUDIENCES = ['consumer', 'business'];
const CHANNELS = ['phone', 'sms', 'email'];
const TIERS = ['existing_contract', 'express', 'express_written', 'opt_in_double'];
const choices = (values, named) => values.map((value) => [value, named(value)]);

const Source = ({ of }) => of && html`<span class="hint wrap">${text.source(of)}</span>`;

/** Each rule that was asked, with what it said. */
export function LawRules({ rules }) {
  const row = ({ rule, title, source, verdict, until, mend }, n) => ({
    key: `${rule} ${n}`,
    cells: [
      html`<span class="wrap">${title}</span> <code class="wrap">${rule}</code> <${Source} of=${source} />`,
      html`${text.verdict(verdict)}${until && html` <span class="hint">${text.until(time(until))}</span>`}`,
      mend ? html`<span class="wrap">${mend}</span>` : words.none,
    ],
  });
  return html`<${Table} label=${text.rules} columns=${Object.values(text.columns)} rows=${rules.map(row)} />`;
}

/** Of a campaign: how many contacts each rule keeps from being reached. */
export function LawCounts({ counts }) {
  const row = ({ rule, title, source, barred, held, mend }) => ({
    key: rule,
    cells: [html`<span class="wrap">${title}</span> <${Source} of=${source} />`, count(barred), count(held), html`<span class="wrap">${mend}</span>`],
  });
  return html`
    <section class="stack tight"><h3>${text.counts}</h3>
      <p class="hint">${place.value.env === 'test' ? text.observed : text.counted}</p>
      <${Table} label=${text.counts} columns=${Object.values(text.countColumns)} rows=${counts.map(row)} />
    </section>`;
}

const spanOf = ({ start, end }) => `${start}–${end}`;

function Change({ of: { date, begins, ends } }) {
  const names = (all) => all.map(({ title }) => title).join('; ');
  return html`
    <p class="notice">${text.change(date)}${begins.length > 0 && ` ${text.begins(names(begins))}`}${ends.length > 0 && ` ${text.ends(names(ends))}`}</p>`;
}

function Answer({ asked, isBinding }) {
  const loaded = useLoad(() => call('GET', `/compliance/check${query(asked)}`), [JSON.stringify(asked)]);
  return html`
    <${Loaded} of=${loaded}>${(found) => html`
      <p role="status"><strong>${found.allowed ? text.allowed : text.notAllowed}</strong> ${!(found.binding || isBinding) && text.observed}</p>
      <p class="hint">${text.where(found.places.map((one) => one.place).join(', '))} ${text.at(time(found.at))} ${text.version(found.pack_version)}</p>
      <ul class="plain-list">${found.hours.map(({ timezone, date, open }) => html`
        <li key=${timezone}>${open.length ? text.hours(date, timezone.replaceAll('_', ' '), open.map(spanOf).join(', ')) : text.closed(date, timezone.replaceAll('_', ' '))}</li>`)}</ul>
      <p class="hint">${text.opens}: <${Time} of=${found.next_opening_at} /></p>
      ${found.warnings.map(({ rule, title, mend }) => html`<p key=${rule} class="notice">${text.warning(title, mend)}</p>`)}
      ${found.sms_line && html`<p class="hint">${text.smsLine(found.sms_line)}</p>`}
      ${found.next_change && html`<${Change} of=${found.next_change} />`}
      <${LawRules} rules=${found.rules} />`}<//>`;
}

/** Whom it is asked about, as the API takes it. Of somebody of the sample it is known where they are, too. */
function whomOf(typed, sample) {
  // Two letters, and perhaps a part: a place.
  const isPlace = /^[A-Za-z]{2}(-[A-Za-z0-9]{1,3})?$/.test(typed);
  return sample.find(({ to: one }) => one === typed) ?? { [isPlace ? 'region' : 'to']: typed };
}

/**
 * `given`: what is known already, such as the purpose of a campaign; when that changes the answer does, too. `sample`: people to choose from, as
 * the API asks about them. `isBinding`: it bars, whatever the environment; then the first of the sample is asked about at once.
 */
export function LawCheck({ given = {}, sample = [], isBinding = false }) {
  const [first] = sample;
  const [asked, setAsked] = useState(isBinding && first ? first : null);
  const id = useId();
  const act = async (values) => {
    const named = ['purpose', 'audience', 'channel', 'at', 'consent'].filter((name) => values.has(name)).map((name) => [name, values.get(name).trim()]);
    const next = { ...Object.fromEntries(named), ...whomOf(values.get('whom').trim(), sample) };
    // Told at the field that it concerns.
    await call('GET', `/compliance/check${query({ ...given, ...next })}`).catch((error) => {
      if (['to', 'region'].includes(error.param)) error.param = 'whom';
      throw error;
    });
    setAsked(next);
  };
  return html`
    <${Form} act=${act} submit=${text.ask}>
      <div class="fields">
        <${Field} name="whom" label=${text.whom} hint="${text.whomHint} ${first ? text.whomSample : ''}" required maxlength="254" autocomplete="off"
          list=${first && id} defaultValue=${first?.to ?? ''} />
        ${first && html`<datalist id=${id}>${sample.map(({ to: one }) => html`<option key=${one} value=${one} />`)}</datalist>`}
        <${Field} name="at" type="date" label=${text.day} hint=${text.dayHint} min="2000-01-01" max="2099-12-31" />
        ${!given.purpose && html`<${Select} name="purpose" label=${text.purpose} options=${choices(PURPOSES, text.purposes)} defaultValue="marketing" />`}
        ${!given.audience && html`<${Select} name="audience" label=${text.audience} options=${choices(AUDIENCES, text.audiences)} defaultValue="consumer" />`}
        ${!given.channel && html`<${Select} name="channel" label=${text.channel} options=${[['', text.usual], ...choices(CHANNELS, text.channels)]} />`}
        <${Select} name="consent" label=${text.consent} hint=${text.consentHint} options=${[['', text.asKept], ...choices(TIERS, text.tiers)]} />
      </div>
    <//>
    ${asked && html`<${Answer} asked=${{ ...given, ...asked }} isBinding=${isBinding} />`}`;
}

export function Law() {
  return html`
    <section class="stack" aria-labelledby="law">
      <div class="stack tight"><h2 id="law">${text.title}</h2><p class="muted">${text.intro}</p></div>
      <${LawCheck} />
      <p><a href=${to('compliance', 'rules')}>${text.all}</a></p>
    </section>`;
}

function ruleRow(rule) {
  const { id, title, places, purposes, channels, from, until, source, confidence, mend } = rule;
  const days = [from && text.from(from), until && text.to(until)].filter(Boolean).join(' ');
  return {
    key: id,
    cells: [
      html`<span class="wrap">${title}</span> <code class="wrap">${id}</code>`, html`<span class="wrap">${places.join(', ')}</span>`,
      `${purposes.map(text.purposes).join(', ')}; ${channels.map(text.channels).join(', ')}`, days || text.always,
      html`<span class="wrap">${source}</span> <span class="hint">${text.confidence(confidence)}</span>`, html`<span class="wrap">${mend}</span>`,
    ],
  };
}

/** All rules of the pack, narrowed by what the address says. */
export function LawPages() {
  const given = (name) => place.value.query.get(name) ?? '';
  const asked = Object.fromEntries(['place', 'purpose', 'channel', 'at'].map((name) => [name, given(name)]));
  const loaded = useLoad(() => call('GET', `/compliance/rules${query(asked)}`), [JSON.stringify(asked)]);
  const act = async (values) => {
    const next = Object.fromEntries(Object.keys(asked).map((name) => [name, (values.get(name) ?? '').trim()]));
    await call('GET', `/compliance/rules${query(next)}`);
    go(to('compliance', 'rules', next), { replace: true });
  };
  return html`
    <${Heading} title=${text.rulesTitle} />
    <p class="muted">${text.rulesIntro} <a href=${to('compliance')}>${words.nav.compliance}</a></p>
    <${Form} act=${act} submit=${text.show}>
      <div class="fields">
        <${Field} name="place" label=${text.place} hint=${text.placeHint} maxlength="6" defaultValue=${asked.place} autocomplete="off" />
        <${Select} name="purpose" label=${text.purpose} options=${[['', text.any], ...choices(PURPOSES, text.purposes)]} defaultValue=${asked.purpose} />
        <${Select} name="channel" label=${text.channel} options=${[['', text.any], ...choices(CHANNELS, text.channels)]} defaultValue=${asked.channel} />
        <${Field} name="at" type="date" label=${text.day} defaultValue=${asked.at} min="2000-01-01" max="2099-12-31" />
      </div>
    <//>
    <${Loaded} of=${loaded}>${({ data }) => data.length
      ? html`<${Table} label=${text.rulesTitle} columns=${Object.values(text.ruleColumns)} rows=${data.map(ruleRow)} />`
      : html`<p class="empty panel">${text.noRules}</p>`}<//>`;
}
