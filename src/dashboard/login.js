import { ApiError, api, byId, onSubmit } from './common.js';

const NOT_KEPT =
  'E-mail and password are right, but this browser does not keep you signed in: it refuses the cookie. Allow cookies for this address; if it begins with http://, use its https:// address, or http://localhost on the server’s own machine.';
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
  // A browser drops a cookie without a word; the next page would send the person back here, and say nothing.
  await api('GET', '/me').catch((error) => {
    throw error.status === 401 ? new ApiError(NOT_KEPT, { status: 401 }) : error;
  });
  location.replace(next());
});
