// Asking the add-on, and writing to the page. Addresses are relative, so that the page works below any path.
export const byId = (id) => document.getElementById(id)

/** An element with text: whatever the cluster says is shown as it is, never read as HTML. */
export function make(tag, text, className) {
  const element = document.createElement(tag)
  if (text !== undefined) element.textContent = text
  if (className) element.className = className
  return element
}

/** An answer that says no, and why. */
export class Refused extends Error {}

/** What the add-on answers. */
export async function ask(path, options) {
  const response = await fetch(path, { ...options, headers: { Accept: 'application/json' } })
  const body = await response.json().catch(() => ({}))
  if (response.status === 401)
    throw new Refused('Unauthorized. Your access was taken away, or your credential has expired.')
  if (!response.ok) throw new Refused(body.message ?? `the answer was ${response.status}`)
  return body
}

/** Says what went wrong, and under which name the user was known; without an error all is well again. */
export function showProblem(error) {
  const place = byId('problem')
  place.hidden = !error
  byId('knows').textContent = error ? 'This add-on knew you as' : 'This add-on knows you as'
  if (error) place.textContent = wordsFor(error)
}

/** An error in words for people. */
export const wordsFor = (error) =>
  error instanceof Refused
    ? `The cluster says: ${error.message}`
    : 'The add-on cannot be reached. Is the proxy still running?'
