// Speaks to authenticators and shows local times. Everything else on the pages works without a script.

const FAILED = 'That did not work. Try again.';

/** Sends JSON, or nothing, and gives what came back; throws what the server said. */
async function ask(path, csrf, body) {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'x-csrf-token': csrf, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error?.message ?? FAILED);
  return answer;
}

async function signIn({ csrf, next }) {
  const path = '/oauth/interaction/sign-in/passkey';
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(await ask(`${path}/options`, csrf));
  const credential = await navigator.credentials.get({ publicKey });
  return ask(path, csrf, { next, credential: credential.toJSON() });
}

async function add({ csrf }, place) {
  const path = '/oauth/interaction/account/passkeys';
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(await ask(`${path}/options`, csrf));
  const credential = await navigator.credentials.create({ publicKey });
  return ask(path, csrf, { label: place.querySelector('input').value, credential: credential.toJSON() });
}

/** What a person can read of a failure; the browser's own words are for programmers. */
function explain(error) {
  if (error.name === 'NotAllowedError') return 'It was cancelled, or took too long. Try again.';
  if (error.name === 'InvalidStateError') return 'This device has a passkey for you already.';
  return error instanceof DOMException ? FAILED : error.message;
}

function offer(place) {
  const button = place.querySelector('button');
  const fault = place.querySelector('.fault');
  place.hidden = false;
  button.addEventListener('click', async () => {
    button.disabled = true;
    fault.textContent = '';
    try {
      const { next } = await (place.dataset.passkey === 'add' ? add : signIn)(place.dataset, place);
      location.assign(next);
    } catch (error) {
      fault.textContent = explain(error);
      button.disabled = false;
    }
  });
}

for (const time of document.querySelectorAll('time')) {
  time.title = time.textContent;
  time.textContent = new Date(time.dateTime).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
}

// Absent where the page is not secure, and in old browsers.
if (typeof globalThis.PublicKeyCredential?.parseCreationOptionsFromJSON === 'function') {
  for (const place of document.querySelectorAll('[data-passkey]')) offer(place);
}
