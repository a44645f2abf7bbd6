import { ApiError, api, byId, onSubmit, showCard, tokenOfLink } from './common.js';

const MAY = {
  viewer: 'you see everything and change nothing.',
  admin: 'you see and change everything but members and the workspace itself.',
  owner: 'you see and change everything.',
};
const PASSWORD = {
  new: {
    label: 'Choose a password', hint: 'At least 12 characters. A few random words work well.', message: 'Use at least 12 characters.',
    autocomplete: 'new-password', minLength: 12,
  },
  known: {
    label: 'Your password', hint: 'You already have an account on this server: enter its password.', message: 'Enter your password.',
    autocomplete: 'current-password', minLength: 0,
  },
};
const TOO_MANY = 'Too many attempts. Wait a few minutes, then try again.';

let token = null;
/** The workspace that is joined, as addresses name it. */
let joined = '';

async function look() {
  byId('looking').hidden = false;
  try {
    show(await api('POST', '/invitations/look', { token }));
  } catch (error) {
    byId('why').textContent = error.message;
    showCard(error.status === 404 || error.status === 422 ? 'no-invitation' : 'unknown');
  } finally {
    byId('looking').hidden = true;
  }
}

function show({ workspace, slug, email, role, has_account: hasAccount }) {
  joined = slug;
  const { label, hint, message, autocomplete, minLength } = hasAccount ? PASSWORD.known : PASSWORD.new;
  const password = byId('password');
  byId('workspace').textContent = workspace;
  byId('role').textContent = role;
  byId('may').textContent = MAY[role] ?? '';
  byId('email').value = email;
  byId('password-label').textContent = label;
  byId('password-hint').textContent = hint;
  password.dataset.message = message;
  password.autocomplete = autocomplete;
  if (minLength) password.minLength = minLength;
  else password.removeAttribute('minlength');
  showCard('join-card');
  password.focus();
}

function begin() {
  const found = tokenOfLink();
  token = found ?? token;
  if (token) look();
  else showCard('no-invitation');
}

onSubmit(byId('join'), async (form) => {
  try {
    await api('POST', '/invitations/accept', { token, password: form.get('password') });
    return location.replace(`/t/${encodeURIComponent(joined)}/test/overview`);
  } catch (error) {
    if (error.status === 404) return showCard('no-invitation');
    throw error.status === 429 ? new ApiError(TOO_MANY, { status: 429 }) : error;
  }
});

byId('again').addEventListener('click', look);
addEventListener('hashchange', begin);
begin();
