// What is to be expected of a campaign: when its list will be through, who is left out and why, whose hours are kept.
import { html, useMemo } from '../html.js';
import { count, decimal, money, time } from '../format.js';
import { Facts, Table, Time } from '../parts.js';
import { place, to } from '../place.js';
import { words } from '../words.js';
import { LawCounts } from './law.js';

const text = words.outlook;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Steps of the picture: the first with which it has no more than so many. */
const STEPS = [MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR];
const MOST_STEPS = 60;
const FEWEST_STEPS = 12;
/** Further ahead the API says nothing. */
const HORIZON = 60 * DAY;
const MOST_ZONES = 20;
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const ALL_DAY = [{ days: DAYS, start: '00:00', end: '24:00' }];
const USUAL = [{ days: DAYS, start: '09:00', end: '20:00' }];
/** With live numbers nobody is called outside of these, wherever they are. */
const FLOOR = { start: '08:00', end: '21:00' };

const minutesOf = (clock) => Number(clock.slice(0, 2)) * 60 + Number(clock.slice(3));
const isWithin = (minute, { start, end }) => minute >= minutesOf(start) && minute < minutesOf(end);

/** Wall time of zones. Offsets change seldom: they are looked up every six hours. */
function clocks() {
  const offsets = new Map();
  const formats = new Map();
  const formatOf = (zone) => {
    if (!formats.has(zone)) {
      formats.set(zone, new Intl.DateTimeFormat('en-US', {
        timeZone: zone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric',
      }));
    }
    return formats.get(zone);
  };
  const offset = (zone, at) => {
    const block = Math.floor(at / (6 * HOUR));
    const key = `${zone} ${block}`;
    if (!offsets.has(key)) {
      const begins = block * 6 * HOUR;
      const parts = Object.fromEntries(formatOf(zone).formatToParts(begins).map(({ type, value }) => [type, Number(value)]));
      offsets.set(key, Date.UTC(parts.year, parts.month - 1, parts.day, parts.hour, parts.minute) - begins);
    }
    return offsets.get(key);
  };
  return (zone, at) => {
    const local = new Date(at + offset(zone, at));
    return { date: local.toISOString().slice(0, 10), day: DAYS[local.getUTCDay()], minute: local.getUTCHours() * 60 + local.getUTCMinutes() };
  };
}

/** May the people of these zones be called at a moment? */
function hoursOf({ schedule }, { env, zone }) {
  const clock = clocks();
  const windows = schedule.windows ?? (env === 'live' ? USUAL : ALL_DAY);
  // Of the moment that is looked at: groups share their zones.
  const known = { at: 0, zones: new Map() };
  const look = (one, at) => {
    const { date, day, minute } = clock(one, at);
    const isOpen = !schedule.blackout_dates.includes(date) && windows.some((window) => window.days.includes(day) && isWithin(minute, window));
    return { isOpen, isAwake: env !== 'live' || isWithin(minute, FLOOR) };
  };
  const of = (one, at) => {
    if (known.at !== at) Object.assign(known, { at, zones: new Map() });
    if (!known.zones.has(one)) known.zones.set(one, look(one, at));
    return known.zones.get(one);
  };
  const isOpen = (zones, at) => {
    const counted = schedule.timezone_mode === 'fixed' ? [schedule.timezone ?? zone] : zones;
    return counted.every((one) => of(one, at).isOpen) && zones.every((one) => of(one, at).isAwake);
  };
  return { isOpen, dayOf: (at) => clock(schedule.timezone ?? zone, at).date };
}

const midnight = (at) => new Date(at).setHours(0, 0, 0, 0);
const next = (at, step) => (step === DAY ? new Date(at).setDate(new Date(at).getDate() + 1) : at + step);

/**
 * How many are called when: `{ step, steps: [{ from, calls, done }] }`. The API says how many, how fast, whose hours, and when the last one is
 * called; what lies between is reckoned here by the same hours and the same pace.
 */
export function foresee(outlook, campaign, about) {
  const begins = Math.max(Date.parse(outlook.generated_at), Date.parse(campaign.schedule.starts_at ?? outlook.generated_at));
  const ends = outlook.expected_finish_at ? Math.max(Date.parse(outlook.expected_finish_at), begins) : begins + HORIZON;
  const step = STEPS.find((one) => (ends - begins) / one <= MOST_STEPS) ?? DAY;
  const { isOpen, dayOf } = hoursOf(campaign, about);
  const called = outlook.zones.filter(({ timezones }) => timezones.length);
  const all = called.reduce((sum, { contacts }) => sum + contacts, 0);
  const groups = called.map(({ timezones, contacts }) => ({ timezones, left: (contacts / all) * outlook.eligible }));
  const perDay = campaign.caps.campaign_per_day ?? Infinity;
  let [reckoned, done, today, dialed] = [0, 0, '', 0];
  const steps = [];
  for (let from = step === DAY ? midnight(begins) : Math.floor(begins / step) * step; from <= ends; from = next(from, step)) {
    const until = next(from, step);
    const slot = Math.min(step, 15 * MINUTE);
    for (let at = Math.max(from, begins); at < Math.min(until, ends); at = Math.floor(at / slot) * slot + slot) {
      const length = Math.min(Math.floor(at / slot) * slot + slot, ends) - at;
      const day = dayOf(at);
      if (day !== today) [today, dialed] = [day, 0];
      const open = groups.filter((group) => group.left > 0 && isOpen(group.timezones, at));
      const waiting = open.reduce((sum, group) => sum + group.left, 0);
      const some = Math.min(waiting, (outlook.calls_per_second * length) / 1000, perDay - dialed);
      for (const group of open) group.left -= (group.left / waiting) * some;
      dialed += some;
      reckoned += some;
    }
    // Whoever waits for a time of their own comes last, and the last one when the API says so.
    let through = Math.round(reckoned);
    if (outlook.expected_finish_at) through = until > ends ? outlook.eligible : Math.min(through, outlook.eligible - 1);
    steps.push({ from, calls: through - done, done: through });
    done = through;
  }
  return { step, steps };
}

const named = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric', month: 'short' });
const labelOf = (step) => (at) => (step === DAY ? named.format(at) : time(new Date(at).toISOString()));

/** Bars are calls, the line is the share of the list that is through. */
function Picture({ outlook, campaign, about }) {
  const { step, steps } = useMemo(() => foresee(outlook, campaign, about), [outlook]);
  const most = Math.max(...steps.map(({ calls }) => calls), 1);
  // A single bar is no picture: what comes after the end is shown, too.
  const shown = [...steps];
  while (shown.length < FEWEST_STEPS) shown.push({ from: next(shown.at(-1).from, step), calls: 0, done: shown.at(-1).done });
  const width = shown.length * 10;
  const label = labelOf(step);
  const line = shown.map(({ done }, n) => `${(n + 1) * 10},${100 - (done / outlook.eligible) * 100}`).join(' ');
  const unit = text.steps[step / MINUTE];
  const row = ({ from, calls, done }) => ({ key: from, cells: [label(from), count(calls), text.of(count(done), count(outlook.eligible))] });
  return html`
    <figure class="stack tight">
      <svg class="bars forecast" viewBox="0 0 ${width} 100" preserveAspectRatio="none" aria-hidden="true">
        ${steps.map(({ from, calls }, n) => html`
          <rect key=${from} class="answered" x=${n * 10 + 1} y=${100 - (calls / most) * 100} width="8" height=${(calls / most) * 100} />`)}
        <polyline points="0,100 ${line}" />
      </svg>
      <div class="ends" aria-hidden="true"><span>${label(shown[0].from)}</span><span>${label(shown.at(-1).from)}</span></div>
      <figcaption class="hint">${text.picture(unit, count(most))} ${text.retriesNot}</figcaption>
    </figure>
    <details><summary>${words.campaign.figures}</summary>
      <${Table} label=${text.title} columns=${[unit, text.table.calls, text.table.done]} rows=${steps.filter(({ calls }) => calls > 0).map(row)} />
    </details>`;
}

const zonesOf = ({ timezones }) => (timezones.length ? timezones.map((zone) => zone.replaceAll('_', ' ')).join(', ') : text.noZone);

function Skips({ skips }) {
  const some = Object.entries(skips).filter(([, contacts]) => contacts > 0);
  return html`
    <section class="stack tight"><h3>${text.skips}</h3>
      ${some.length
        ? html`<${Table} label=${text.skips} columns=${Object.values(text.skipTable)} rows=${some.map(([reason, contacts]) => ({
          key: reason,
          cells: [reason === 'dnc_blocked' ? html`<a href=${to('dnc')}>${text.skipped(reason)}</a>` : text.skipped(reason), count(contacts)],
        }))} />`
        : html`<p class="muted">${text.noSkips}</p>`}
    </section>`;
}

function Zones({ zones }) {
  const opening = ({ open_now: isOpen, opens_at: opens }) => (isOpen ? text.openNow : opens ? html`<${Time} of=${opens} />` : text.neverOpen);
  return html`
    <section class="stack tight"><h3>${text.zones}</h3>
      <${Table} label=${text.zones} columns=${Object.values(text.zoneTable)} rows=${zones.slice(0, MOST_ZONES).map((zone, n) => ({
        key: n, cells: [html`<span class="wrap">${zonesOf(zone)}</span>`, count(zone.contacts), opening(zone)],
      }))} />
      ${zones.length > MOST_ZONES && html`<p class="hint">${text.moreZones(count(zones.length - MOST_ZONES))}</p>`}
    </section>`;
}

/** `about`: the workspace's zone and credits, and the environment. */
export function Outlook({ outlook, campaign, about }) {
  const isPhone = campaign.channel === 'phone';
  const { env } = place.value;
  const { budget_cents: budget } = campaign.caps;
  const { calls_per_second: wanted } = campaign.pacing;
  // Of an empty list nobody can be contacted: one of the two is enough.
  const problems = outlook.problems.filter(({ code }) => code !== 'nobody_eligible' || outlook.contacts > 0);
  return html`
    ${problems.map(({ code, message }) => html`
      <p class="error block" role="alert" key=${code}>${text.problem(code, message.replaceAll('`', ''))}</p>`)}
    <${Facts} of=${[
      [text.facts.finish, outlook.eligible ? outlook.expected_finish_at ? time(outlook.expected_finish_at) : text.farAway : null],
      [text.facts.eligible, text.of(count(outlook.eligible), count(outlook.contacts))],
      [text.facts.pace(isPhone), words.campaign.rateOf(decimal(outlook.calls_per_second), outlook.calls_per_second < wanted && wanted)],
      [text.facts.segments, outlook.texts && text.segments(count(outlook.texts.segments), count(outlook.texts.messages))],
      [text.facts.cost, outlook.texts && money(outlook.texts.cost_cents, about.currency)],
      [text.facts.capped, outlook.capped ? count(outlook.capped) : null],
      [text.facts.budget, budget === null ? text.noBudget : money(budget, about.currency)],
      [text.facts.credits, money(about.credits, about.currency)],
    ]} />
    ${outlook.texts?.signed > 0 && html`<p class="hint">${text.signed(count(outlook.texts.signed), outlook.texts.signed_characters)}</p>`}
    ${outlook.eligible > 0 && html`
      <section class="stack tight"><h3>${text.title}</h3><${Picture} outlook=${outlook} campaign=${campaign} about=${{ ...about, env }} /></section>`}
    <${Skips} skips=${outlook.skips} />
    ${outlook.law.length > 0 && html`<${LawCounts} counts=${outlook.law} />`}
    ${outlook.zones.length > 0 && html`<${Zones} zones=${outlook.zones} />`}
    <p class="hint">${text.asOf(time(outlook.generated_at))}</p>`;
}
