// Numbers, money and times as the person's own browser writes them.
import { words } from './words.js';

const number = new Intl.NumberFormat();
const share = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });

export const count = (value) => number.format(value);
export const percent = (value) => (value === null || value === undefined ? words.none : share.format(value));
export const decimal = (value) => new Intl.NumberFormat(undefined, { maximumFractionDigits: 2 }).format(value);
export const money = (cents, currency = 'USD') =>
  new Intl.NumberFormat(undefined, { style: 'currency', currency }).format(cents / 100);
export const time = (iso) => (iso ? moment.format(new Date(iso)) : words.none);
export const timeOfDay = (iso) => (iso ? clock.format(new Date(iso)) : words.none);

/** `3:07`. */
export function duration(seconds) {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

export const nameOf = ({ first_name: first, last_name: last }) => [first, last].filter(Boolean).join(' ');
