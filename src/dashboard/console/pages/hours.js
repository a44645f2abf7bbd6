// When contacts may be reached: windows, time zones, days off, the end. Fields have the names that the API gives them in its errors.
import { ApiError } from '../../common.js';
import { Area, Checks, Field, Select } from '../form.js';
import { html, useState } from '../html.js';
import { place } from '../place.js';
import { Rows } from '../rows.js';
import { rowsOf, someText } from '../values.js';
import { words } from '../words.js';

const text = words.rules;
const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
const OFFICE = { days: DAYS.slice(0, 5), start: '09:00', end: '18:00' };
const MOST_WINDOWS = 50;
const MODES = ['contact', 'fixed'];
const UNKNOWN = ['fallback', 'strictest', 'skip'];

const options = (values, named) => values.map((value) => [value, named[value]]);
const weekday = new Intl.DateTimeFormat(undefined, { weekday: 'short', timeZone: 'UTC' });
/** The first of January 2024 was a Monday. */
const dayName = (n) => weekday.format(Date.UTC(2024, 0, n + 1));

/** A moment as a field for dates and times has it, in this browser's zone. */
export function localOf(iso) {
  if (!iso) return '';
  const at = new Date(iso);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** What such a field says. One that was not touched keeps the seconds that it does not show. */
export function momentOf(values, name, before) {
  const given = values.get(name) ?? '';
  if (given === localOf(before)) return before ?? null;
  return given ? new Date(given).toISOString() : null;
}

export const Moment = ({ name, value, ...rest }) => html`<${Field} type="datetime-local" name=${name} defaultValue=${localOf(value)} ...${rest} />`;

/** A field for a time zone, which offers those that there are. */
export function Zone({ name, value, ...rest }) {
  const zones = Intl.supportedValuesOf?.('timeZone') ?? [];
  return html`
    <${Field} name=${name} defaultValue=${value ?? ''} list="zones-${name}" maxlength="64" autocomplete="off" spellcheck=${false} ...${rest} />
    <datalist id="zones-${name}">${zones.map((zone) => html`<option key=${zone} value=${zone} />`)}</datalist>`;
}

const Window = ({ at, window: { days, start, end } }) => html`
  <div class="days"><${Checks} name="${at}.days" legend=${text.days} options=${DAYS.map((day, n) => [day, dayName(n)])} chosen=${days} /></div>
  <div class="fields">
    <${Field} type="time" name="${at}.start" label=${text.from} defaultValue=${start} required />
    <${Field} type="time" name="${at}.end" label=${text.until} hint=${text.untilHint} defaultValue=${end === '24:00' ? '00:00' : end} required />
  </div>`;

/** `zone`: the workspace's; `isArmed`: it waits for its start, which can be moved. */
export function Hours({ schedule, zone, isArmed }) {
  const [isOwn, setIsOwn] = useState(schedule.windows !== null);
  const { env } = place.value;
  return html`
    <${Select} name="schedule.windows" label=${text.hours} hint=${text.hoursHint(env)} defaultValue=${isOwn ? 'own' : 'usual'}
      options=${[['usual', text.usual(env)], ['own', text.own]]} onChange=${({ target }) => setIsOwn(target.value === 'own')} />
    ${isOwn && html`
      <${Rows} name="schedule.windows" label=${text.window} add=${text.addWindow} values=${schedule.windows ?? [OFFICE]} empty=${OFFICE} most=${MOST_WINDOWS}>
        ${(at, window) => html`<${Window} at=${at} window=${window} />`}<//>`}
    <div class="fields">
      <${Select} name="schedule.timezone_mode" label=${text.mode} options=${options(MODES, text.modes)} defaultValue=${schedule.timezone_mode} />
      <div><${Zone} name="schedule.timezone" value=${schedule.timezone} label=${text.zone} hint=${text.zoneHint(zone)} /></div>
      <${Select} name="schedule.on_unknown_timezone" label=${text.unknown} hint=${text.unknownHint} options=${options(UNKNOWN, text.unknowns)}
        defaultValue=${schedule.on_unknown_timezone} />
      ${isArmed && html`<${Moment} name="schedule.starts_at" value=${schedule.starts_at} label=${text.startsAt} hint=${text.startsAtHint} />`}
      <${Moment} name="schedule.ends_at" value=${schedule.ends_at} label=${text.endsAt} hint=${text.endsAtHint} />
    </div>
    <${Area} name="schedule.blackout_dates" label=${text.holidays} hint=${text.holidaysHint} rows="3" spellcheck=${false}
      defaultValue=${schedule.blackout_dates.join('\n')} />`;
}

function windowOf(values, at) {
  const [start, end] = [values.get(`${at}.start`), values.get(`${at}.end`)];
  const window = { days: values.getAll(`${at}.days`), start, end: end === '00:00' ? '24:00' : end };
  if (!window.days.length) throw new ApiError(text.noDay, { param: `${at}.days` });
  if (window.start >= window.end) throw new ApiError(text.overMidnight, { param: `${at}.end` });
  return window;
}

/** What the fields say. */
export const scheduleOf = (values, before) => ({
  windows: values.get('schedule.windows') === 'own' ? rowsOf(values, 'schedule.windows', 'start', (at) => windowOf(values, at)) : null,
  timezone_mode: values.get('schedule.timezone_mode'),
  timezone: someText(values, 'schedule.timezone'),
  on_unknown_timezone: values.get('schedule.on_unknown_timezone'),
  blackout_dates: [...new Set(values.get('schedule.blackout_dates').split(/[\s,;]+/).filter(Boolean))],
  ...(values.has('schedule.starts_at') && { starts_at: momentOf(values, 'schedule.starts_at', before.starts_at) }),
  ends_at: momentOf(values, 'schedule.ends_at', before.ends_at),
});
