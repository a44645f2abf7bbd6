import { call, callFresh, showAccount } from './account.js';
import { ApiError, byId, clearErrors, copyText, onSubmit } from './common.js';

const READ_WRITE = ['read', 'write'];
const SCOPES = {
  sessions: READ_WRITE, campaigns: READ_WRITE, agents: READ_WRITE, functions: READ_WRITE, voices: READ_WRITE,
  numbers: READ_WRITE, webhooks: READ_WRITE, credits: READ_WRITE, concurrency: READ_WRITE,
  questions: ['read'], sms: ['send'], email: ['send'],
};
const SCOPE_TOTAL = Object.values(SCOPES).flat().length;
const WORKSPACE_MEMORY = 'callboard.workspace';
const DAY_MS = 86_400_000;

let workspaces = [];
let workspace = null;
let keys = [];
let nextCursor = null;

const keysPath = (suffix = '') => `/t/${encodeURIComponent(workspace.slug)}/api-keys${suffix}`;
const canWrite = () => workspace.role !== 'viewer';

/** Runs something outside a form; its error goes to the top of the page. */
async function attempt(action) {
  byId('page-error').textContent = '';
  try {
    await action();
  } catch (error) {
    byId('page-error').textContent = error.message;
  }
}

// --- Workspaces ---

async function start() {
  const me = await call('GET', '/me');
  showAccount(me.user.email);
  workspaces = me.workspaces;
  if (!workspaces.length) throw new ApiError('You belong to no workspace yet. Ask someone who manages one to add you.');
  const select = byId('workspace-select');
  select.replaceChildren(...workspaces.map(({ name, slug }) => new Option(name, slug)));
  byId('workspace').hidden = workspaces.length < 2;
  const remembered = workspaces.find(({ slug }) => slug === localStorage.getItem(WORKSPACE_MEMORY));
  await openWorkspace(remembered ?? workspaces[0]);
}

async function openWorkspace(chosen) {
  workspace = chosen;
  byId('workspace-select').value = chosen.slug;
  localStorage.setItem(WORKSPACE_MEMORY, chosen.slug);
  byId('user-email').href = `/t/${encodeURIComponent(chosen.slug)}/test/account`;
  for (const id of ['keys', 'empty', 'more', 'create-button']) byId(id).hidden = true;
  byId('view-only').hidden = canWrite();
  await loadKeys();
}

// --- The list ---

async function loadKeys(cursor = null) {
  const asked = workspace;
  const page = await call('GET', keysPath(`?limit=100${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`));
  if (asked !== workspace) return; // another workspace was opened meanwhile
  keys = cursor ? [...keys, ...page.data] : page.data;
  nextCursor = page.has_more ? page.next_cursor : null;
  render();
}

function render() {
  const empty = keys.length === 0;
  byId('keys').replaceChildren(...keys.map(keyRow));
  byId('keys').hidden = empty;
  byId('empty').hidden = !empty;
  byId('empty-steps').hidden = !canWrite();
  byId('empty-viewer').hidden = canWrite();
  byId('empty').querySelector('[data-create]').hidden = !canWrite();
  byId('create-button').hidden = empty || !canWrite();
  byId('more').hidden = !nextCursor;
}

function keyRow(key) {
  const row = byId('key-template').content.cloneNode(true);
  const slot = (name) => row.querySelector(`[data-slot="${name}"]`);
  const expired = key.expires_at && new Date(key.expires_at) <= new Date();
  const state = key.revoked_at ? 'Revoked' : expired ? 'Expired' : '';
  row.firstElementChild.classList.toggle('ended', Boolean(state));
  slot('name').textContent = key.name;
  slot('env').textContent = key.env === 'live' ? 'Live' : 'Test';
  slot('env').classList.toggle('live', key.env === 'live');
  slot('state').textContent = state;
  slot('state').hidden = !state;
  slot('prefix').textContent = `${key.prefix}…`;
  slot('created').append(dateOf(key.created_at));
  slot('used').append(dateOf(key.last_used_at));
  slot('end-label').textContent = state || 'Expires';
  slot('end').append(dateOf(key.revoked_at ?? key.expires_at));
  const count = key.scopes.length;
  slot('scope-count').textContent = count === SCOPE_TOTAL ? 'All scopes' : `${count} ${count === 1 ? 'scope' : 'scopes'}`;
  slot('scopes').textContent = key.scopes.join(', ');
  slot('revoke').hidden = Boolean(key.revoked_at) || !canWrite();
  slot('revoke').setAttribute('aria-label', `Revoke ${key.name}`);
  slot('revoke').addEventListener('click', () => askToRevoke(key));
  return row;
}

function dateOf(iso) {
  if (!iso) return 'Never';
  const date = new Date(iso);
  const time = document.createElement('time');
  time.dateTime = iso;
  time.title = date.toLocaleString();
  time.textContent = date.toLocaleDateString(undefined, { dateStyle: 'medium' });
  return time;
}

// --- Creating ---

const scopeBoxes = () => [...byId('scope-grid').querySelectorAll('input')];

function buildScopeGrid() {
  for (const [resource, actions] of Object.entries(SCOPES)) {
    const row = document.createElement('div');
    row.className = 'scope-row';
    row.setAttribute('role', 'group');
    row.setAttribute('aria-label', resource);
    row.append(resource);
    for (const action of actions) {
      const box = Object.assign(document.createElement('input'), { type: 'checkbox', name: 'scopes', value: `${resource}:${action}` });
      box.defaultChecked = true;
      const label = document.createElement('label');
      label.append(box, action);
      row.append(label);
    }
    byId('scope-grid').append(row);
  }
}

function summarizeScopes() {
  const chosen = scopeBoxes().filter((box) => box.checked).length;
  byId('scope-summary').textContent = chosen === SCOPE_TOTAL ? `All ${chosen} allowed` : `${chosen} of ${SCOPE_TOTAL} allowed`;
}

function openCreate() {
  byId('create').reset();
  clearErrors(byId('create'));
  byId('scope-details').open = false;
  summarizeScopes();
  byId('create-dialog').showModal();
}

onSubmit(byId('create'), async (form) => {
  const scopes = form.getAll('scopes');
  if (!scopes.length) throw new ApiError('Choose at least one scope.', { param: 'scopes' });
  const request = { name: form.get('name'), env: form.get('env'), scopes };
  const days = Number(form.get('expires_at'));
  if (days) request.expires_at = new Date(Date.now() + days * DAY_MS).toISOString();
  const { plaintext } = await callFresh('POST', keysPath(), request);
  byId('create-dialog').close();
  showSecret(plaintext);
  await attempt(() => loadKeys());
});

function showSecret(plaintext) {
  byId('secret').textContent = plaintext;
  byId('example').textContent = `KEY='${plaintext}'\ncurl -H "Authorization: Bearer $KEY" ${location.origin}/v1/me`;
  byId('copy-status').textContent = '';
  byId('secret-dialog').showModal();
}

// --- Revoking ---

let keyToRevoke = null;

function askToRevoke(key) {
  keyToRevoke = key;
  clearErrors(byId('revoke'));
  byId('revoke-title').textContent = `Revoke “${key.name}”?`;
  byId('revoke-dialog').showModal();
}

onSubmit(byId('revoke'), async () => {
  await call('DELETE', keysPath(`/${encodeURIComponent(keyToRevoke.id)}`));
  keyToRevoke.revoked_at = new Date().toISOString();
  byId('revoke-dialog').close();
  render();
  byId('status').textContent = `${keyToRevoke.name} is revoked.`;
  byId('title').focus();
});

// --- Wiring ---

buildScopeGrid();
for (const button of document.querySelectorAll('[data-create]')) button.addEventListener('click', openCreate);
byId('scope-grid').addEventListener('input', summarizeScopes);
for (const button of document.querySelectorAll('[data-scopes]')) {
  button.addEventListener('click', () => {
    for (const box of scopeBoxes()) box.checked = button.dataset.scopes === 'all';
    scopeBoxes()[0].dispatchEvent(new Event('input', { bubbles: true })); // as if changed by hand
  });
}
for (const button of document.querySelectorAll('[data-copies]')) {
  button.addEventListener('click', async () => {
    const copied = await copyText(byId(button.dataset.copies));
    byId('copy-status').textContent = copied ? 'Copied.' : 'Your browser did not allow it. Select the text and copy it.';
  });
}
byId('secret-dialog').addEventListener('cancel', (event) => event.preventDefault()); // Escape must not lose the key
byId('secret-dialog').addEventListener('close', () => {
  for (const id of ['secret', 'example']) byId(id).textContent = '';
  byId('create-button').focus();
});
byId('workspace-select').addEventListener('change', ({ target }) =>
  attempt(() => openWorkspace(workspaces.find(({ slug }) => slug === target.value))));
byId('more').addEventListener('click', () => attempt(async () => {
  await loadKeys(nextCursor);
  if (!nextCursor) byId('title').focus();
}));
byId('logout').addEventListener('click', () => attempt(async () => {
  await call('POST', '/logout', {});
  location.replace('/login');
}));
addEventListener('pageshow', ({ persisted }) => persisted && location.reload()); // never show a past session
attempt(start);
