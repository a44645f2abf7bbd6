import { api, byId, onSubmit } from './common.js';

let token = null;

/** Takes the one-time token out of the address bar, so that it stays in no history entry. */
function takeToken() {
  const found = new URLSearchParams(location.hash.slice(1)).get('token');
  if (found) {
    token = found;
    history.replaceState(null, '', location.pathname);
  }
  byId('setup-card').hidden = !token;
  byId('needs-link').hidden = Boolean(token);
  if (found) byId('name').focus();
}

const slugFrom = (name) => name.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
  .replace(/[^a-z0-9]+/g, '-').replace(/^-/, '').slice(0, 40).replace(/-$/, '');

let suggestion = '';
byId('name').addEventListener('input', () => {
  const slug = byId('slug');
  if (slug.value && slug.value !== suggestion) return; // written by hand: leave it
  suggestion = slugFrom(byId('name').value);
  slug.value = suggestion;
});

onSubmit(byId('setup'), async (form) => {
  await api('POST', '/signup', { token, ...Object.fromEntries(form) });
  location.replace('/');
});

addEventListener('hashchange', takeToken);
takeToken();
