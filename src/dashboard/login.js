import { ApiError, api, byId, onSubmit } from './common.js';

const WORDS = {
  401: 'The e-mail or password is wrong.',
  429: 'Too many attempts. Wait a few minutes, then try again.',
};

const asked = new URLSearchParams(location.search);
byId('ended').hidden = !asked.has('ended');

/** Where the person was when the session ended: a page of the console, and nowhere else. */
function next() {
  const address = asked.get('next') ?? '';
  return address.startsWith('/t/') ? address : '/';
}

onSubmit(byId('login'), async (form) => {
  try {
    await api('POST', '/login', Object.fromEntries(form));
  } catch (error) {
    throw WORDS[error.status] ? new ApiError(WORDS[error.status], { status: error.status }) : error;
  }
  location.replace(next());
});
