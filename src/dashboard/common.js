// Shared by every page: calls to the server, forms with errors next to their fields, small helpers.

export const byId = (id) => document.getElementById(id);

export class ApiError extends Error {
  constructor(message, { status = 0, code, param } = {}) {
    super(message);
    Object.assign(this, { status, code, param });
  }
}

/** A file and a form say themselves what they are; all else is sent as JSON. What only asks sends nothing. */
const isFile = (body) => body instanceof Blob || body instanceof FormData;

/**
 * Sends one request; returns the parsed body, a Blob of what is not JSON, or null when there is none. Throws an ApiError, with status 0
 * when nobody has answered.
 */
export async function api(method, path, body, headers = {}) {
  let response;
  try {
    response = await fetch(`/v1/_internal${path}`, {
      method,
      headers: { ...(isFile(body) || method === 'GET' ? {} : { 'Content-Type': 'application/json' }), ...headers },
      body: isFile(body) ? body : body && JSON.stringify(body),
    });
  } catch {
    throw new ApiError('The server cannot be reached. Check that it is running, then try again.');
  }
  const isJson = response.headers.get('Content-Type')?.startsWith('application/json');
  if (response.ok && !isJson && response.status !== 204) return response.blob();
  const data = response.status === 204 ? null : await response.json().catch(() => null);
  if (response.ok) return data;
  const { message = `The server answered with status ${response.status}.`, code, param, request_id } = data?.error ?? {};
  const reference = response.status >= 500 && request_id ? ` (request ${request_id})` : '';
  throw new ApiError(message.replaceAll('`', '') + reference, { status: response.status, code, param });
}

/** Checks the form, runs `action(FormData)`, and shows what goes wrong next to the field it concerns. */
export function onSubmit(form, action) {
  form.noValidate = true;
  form.addEventListener('input', ({ target }) => clearError(form, target.name));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (form.getAttribute('aria-busy') === 'true') return;
    clearErrors(form);
    const invalid = [...form.elements].filter((field) => field.willValidate && !field.checkValidity());
    for (const field of invalid) showError(form, field.dataset.message ?? field.validationMessage, field.name);
    if (invalid.length) return invalid[0].focus();
    form.setAttribute('aria-busy', 'true');
    try {
      await action(new FormData(form));
    } catch (error) {
      showError(form, error.message, error.param)?.focus();
    } finally {
      form.removeAttribute('aria-busy');
    }
  });
}

export function clearErrors(form) {
  for (const slot of form.querySelectorAll('[data-error]')) clearError(form, slot.dataset.error);
}

const errorSlot = (form, name) => form.querySelector(`[data-error="${CSS.escape(name)}"]`);
const fieldsNamed = (form, name) => [...form.elements].filter((field) => field.name === name);

function clearError(form, name) {
  const slot = errorSlot(form, name);
  if (slot) slot.textContent = '';
  for (const field of fieldsNamed(form, name)) field.removeAttribute('aria-invalid');
}

/** Writes the message under the field that `param` names ("scopes[0]" means scopes), or under the form. Returns the field. */
function showError(form, message, param = '') {
  const name = param.split(/[^\w-]+/).find((part) => part && errorSlot(form, part));
  errorSlot(form, name ?? 'form').textContent = message;
  if (!name) return undefined;
  const fields = fieldsNamed(form, name);
  for (const field of fields) field.setAttribute('aria-invalid', 'true');
  const details = fields[0]?.closest('details');
  if (details) details.open = true;
  return fields[0];
}

/** Copies an element's text; without clipboard access (plain HTTP) falls back to a selection. Returns whether it worked. */
export async function copyText(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(element);
    return document.execCommand('copy');
  }
}

for (const button of document.querySelectorAll('[data-reveals]')) {
  button.addEventListener('click', () => {
    const input = byId(button.dataset.reveals);
    const reveal = input.type === 'password';
    input.type = reveal ? 'text' : 'password';
    button.textContent = reveal ? 'Hide' : 'Show';
    button.setAttribute('aria-pressed', reveal);
  });
}
for (const button of document.querySelectorAll('[data-close]')) {
  button.addEventListener('click', () => button.closest('dialog').close());
}

/** The secret of a link, `#…` or `#token=…`: taken out of the address bar, so that it stays in no history entry. */
export function tokenOfLink() {
  const token = location.hash.slice(1).replace(/^token=/, '');
  if (token) history.replaceState(null, '', location.pathname);
  return token || null;
}

/** Shows one of the page's cards, and tells its heading to those who do not see that it has changed. */
export function showCard(id) {
  for (const card of document.querySelectorAll('.card')) card.hidden = card.id !== id;
  byId(id).querySelector('h1').focus();
}

/** For a list to choose a country from: `[code, name]`, by name; of what `GET /countries` answers. */
export function countryChoices(countries) {
  const names = new Intl.DisplayNames(['en'], { type: 'region' });
  const named = countries.map(({ country }) => [country, names.of(country) ?? country]);
  return named.sort(([, one], [, two]) => one.localeCompare(two, 'en'));
}

/** For a list to choose a time zone from: `[name, text]`; what the browser knows, each country's, and `more`. */
export function zoneChoices(countries, ...more) {
  const known = Intl.supportedValuesOf?.('timeZone') ?? [];
  const zones = new Set([...known, ...countries.map(({ timezone }) => timezone), ...more].filter(Boolean));
  return [...zones].sort().map((zone) => [zone, zone.replaceAll('_', ' ')]);
}
