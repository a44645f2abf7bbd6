// Whole lists, for what is chosen from them.
import { call, query } from './api.js';

const MOST = 1_000;

/** All of a list of the API, `most` entries and a page more at most. */
export async function everything(path, { most = MOST, ...values } = {}) {
  const rows = [];
  let page = null;
  do {
    page = await call('GET', path + query({ ...values, limit: 100, cursor: page?.next_cursor }));
    rows.push(...page.data);
  } while (page.has_more && rows.length < most);
  return rows;
}

const ORDER = ['cloned', 'provider', 'builtin'];

/** The voices that can speak: the workspace's own first, each kind by name. */
export async function voices() {
  const all = await everything('/voices', { status: 'ready' });
  return all.sort((one, other) => ORDER.indexOf(one.type) - ORDER.indexOf(other.type) || one.name.localeCompare(other.name));
}

export async function functions() {
  const all = await everything('/functions');
  return all.sort((one, other) => one.name.localeCompare(other.name));
}
