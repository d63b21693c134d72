// Buttons that try something: to be somebody else, and to read ConfigMaps.
import { ask, byId, make, wordsFor } from './document.js'

/** Lists the forgeries, each with its button. */
export async function showForgeries(currentUser) {
  const items = (await ask('api/forgeries')).map((forgery) => forgeryItem(forgery, currentUser))
  byId('forgeries').replaceChildren(...items)
  byId('forge-all').addEventListener('click', () => {
    for (const button of byId('forgeries').querySelectorAll('button')) button.click()
  })
}

function forgeryItem({ name, title, explains }, currentUser) {
  const item = make('li')
  const button = make('button', title)
  button.type = 'button'
  const outcome = make('p', undefined, 'outcome')
  outcome.setAttribute('role', 'status')
  button.addEventListener('click', async () => {
    // Not `disabled`, which would take the focus away from whoever uses the keyboard.
    if (button.getAttribute('aria-busy') === 'true') return
    button.setAttribute('aria-busy', 'true')
    try {
      const query = new URLSearchParams({ name })
      const answer = await ask(`api/forgeries?${query}`, { method: 'POST' })
      showOutcome(outcome, outcomeOf(answer, currentUser()))
    } catch (error) {
      showOutcome(outcome, ['unknown', 'Not tried', wordsFor(error)])
    }
    button.removeAttribute('aria-busy')
  })
  item.append(button, make('p', explains), outcome)
  return item
}

function outcomeOf({ status, user, reason, message }, currentUser) {
  if (status === undefined) return ['unknown', 'Not tried', message]
  if (status >= 400)
    return ['good', `Refused: ${[status, reason].filter(Boolean).join(' ')}`, message]
  if (status === 200 && user === currentUser)
    return ['good', `Let in, but as ${user}`, 'what was claimed is gone']
  return ['bad', 'It worked', JSON.stringify({ status, user, reason, message })]
}

function showOutcome(place, [kind, title, text = '']) {
  place.className = `outcome ${kind}`
  place.replaceChildren(make('strong', title), ` ${text}`)
}

/** Lists ConfigMaps of the namespace in the form, on behalf of the user. */
export async function listMaps(currentUser) {
  const place = byId('maps')
  const namespace = byId('namespace').value
  try {
    const query = new URLSearchParams({ namespace })
    const { names, isCut, status, message } = await ask(`api/configmaps?${query}`)
    if (names === undefined) {
      const title = status === 403 ? 'You, or whoami for you, may not: ' : 'That failed: '
      place.replaceChildren(make('p', `${title}${message}${status ? ` (${status})` : ''}`, 'bad'))
      return
    }
    const list = make('ul')
    list.append(...names.map((name) => make('li', name)))
    const count = names.length === 0 ? 'None' : `${isCut ? 'The first ' : ''}${names.length}`
    place.replaceChildren(
      make('p', `${count} in ${namespace}, read as ${currentUser()}`, 'good'),
      list,
    )
  } catch (error) {
    place.replaceChildren(make('p', wordsFor(error), 'bad'))
  }
}
