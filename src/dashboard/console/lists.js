// Whole lists, for what is chosen from them.
import { call, query } from './api.js';

const MOST_PAGES = 5;

/** All of a list of the API, 500 entries at most. */
export async function allOf(path, values = {}) {
  const rows = [];
  let page = null;
  for (let n = 0; n < MOST_PAGES && (n === 0 || page.has_more); n += 1) {
    page = await call('GET', path + query({ ...values, limit: 100, cursor: page?.next_cursor }));
    rows.push(...page.data);
  }
  return rows;
}

const ORDER = ['cloned', 'provider', 'builtin'];

/** The voices that can speak: the workspace's own first, each kind by name. */
export async function voices() {
  const all = await allOf('/voices', { status: 'ready' });
  return all.sort((one, other) => ORDER.indexOf(one.type) - ORDER.indexOf(other.type) || one.name.localeCompare(other.name));
}

export async function functions() {
  const all = await allOf('/functions');
  return all.sort((one, other) => one.name.localeCompare(other.name));
}
