// Who is signed in: calls that need a session, and the password asked for again.
import { ApiError, api, byId, clearErrors, onSubmit } from './common.js';

/** Like `api`, but a session that has ended leads to the login page. */
export async function call(...request) {
  try {
    return await api(...request);
  } catch (error) {
    if (error.status !== 401) throw error;
    location.replace('/login');
    return new Promise(() => {}); // the page is going away
  }
}

/** Like `call`; when the server wants the password once more, asks for it and tries again. */
export async function callFresh(...request) {
  try {
    return await call(...request);
  } catch (error) {
    if (error.status !== 403 || error.param !== 'password') throw error;
    await askForPassword();
    return call(...request);
  }
}

// --- The password, once more ---

let answered = null; // what waits for the dialog: { resolve, reject }

function askForPassword() {
  byId('again').reset();
  clearErrors(byId('again'));
  byId('again-dialog').showModal();
  return new Promise((resolve, reject) => { answered = { resolve, reject }; });
}

onSubmit(byId('again'), async (form) => {
  await call('POST', '/reauthenticate', { password: form.get('password') });
  answered?.resolve();
  answered = null;
  byId('again-dialog').close();
});
byId('again-dialog').addEventListener('close', () => {
  byId('again').reset(); // no password stays in the page
  answered?.reject(new ApiError('This needs your password. Nothing was changed.'));
  answered = null;
});

// --- The account ---

/** Shows whose account it is, with the way to it and the way out. */
export function showAccount(email) {
  byId('user-email').textContent = email;
  for (const field of document.querySelectorAll('[data-username]')) field.defaultValue = email; // also after a reset
  byId('account').hidden = false;
}
