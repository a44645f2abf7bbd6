import { ApiError, api, byId, onSubmit, showCard, tokenOfLink } from './common.js';

const TOO_MANY = 'Too many attempts. Wait a few minutes, then try again.';

let token = null;

function begin() {
  const found = tokenOfLink();
  token = found ?? token;
  showCard(token ? 'reset-card' : 'ask-card');
  byId(token ? 'password' : 'email').focus();
}

const inWords = (error) => (error.status === 429 ? new ApiError(TOO_MANY, { status: 429 }) : error);

onSubmit(byId('ask'), async (form) => {
  const email = form.get('email').trim();
  try {
    await api('POST', '/password-reset', { email });
  } catch (error) {
    if (error.code === 'invalid_state') return showCard('no-mail');
    throw inWords(error);
  }
  byId('address').textContent = email;
  return showCard('sent');
});

onSubmit(byId('reset'), async (form) => {
  try {
    await api('POST', '/password-reset/confirm', { token, password: form.get('password') });
  } catch (error) {
    const isOver = error.status === 404 || (error.status === 422 && error.param === 'token');
    if (isOver) return showCard('expired');
    throw inWords(error);
  }
  byId('reset').reset(); // no password stays in the page
  return showCard('done');
});

byId('another').addEventListener('click', () => {
  token = null;
  showCard('ask-card');
  byId('email').focus();
});
addEventListener('hashchange', begin);
begin();
