// Addresses are relative, so that the page works below any path.
const byId = (id) => document.getElementById(id)
const make = (tag, text, className) => {
  const element = document.createElement(tag)
  if (text !== undefined) element.textContent = text
  if (className) element.className = className
  return element
}

class Refused extends Error {}

async function ask(path, options) {
  const response = await fetch(path, { ...options, headers: { Accept: 'application/json' } })
  const body = await response.json().catch(() => ({}))
  if (!response.ok) throw new Refused(body.message ?? `the answer was ${response.status}`)
  return body
}

function showProblem(error) {
  const place = byId('problem')
  place.hidden = !error
  if (error)
    place.textContent =
      error instanceof Refused
        ? `The cluster says: ${error.message}`
        : 'The add-on cannot be reached. Is the proxy still running?'
}

function showList(id, pairs) {
  byId(id).replaceChildren(
    ...pairs.flatMap(([name, value]) => [make('dt', name), make('dd', value)]),
  )
}

function hopsOf({ user, groups, audience, token }) {
  const signed = token?.header.x5c
    ? 'signed with its serving key, whose certificate comes along'
    : 'signed with a key that it publishes'
  return [
    ['Your browser', `asked ${location.host} and sent no credential at all`],
    ['Local proxy', 'kubectl proxy or sallyport proxy: added the credential of your kubeconfig'],
    [
      'API server',
      `knew you as ${user}${groups.length > 0 ? ` in ${groups.length} groups` : ''}, asked RBAC whether you may use ${audience}, took your credential out and put a token in, ${signed}`,
    ],
    ['Guard', `checked signature, audience ${audience} and times, took the token out, and wrote`],
    ['Add-on', `X-Authenticated-User: ${user}`],
  ]
}

let current

function showIdentity(identity) {
  current = { ...identity, skew: Date.now() - identity.now }
  byId('user').textContent = identity.user
  document.title = `${identity.user}: who am I?`
  byId('groups').replaceChildren(...identity.groups.map((group) => make('li', group)))
  byId('hops').replaceChildren(
    ...hopsOf(identity).map(([title, text]) => {
      const item = make('li')
      item.append(make('strong', title), make('span', text))
      return item
    }),
  )
  const { header = {}, claims = {} } = identity.token ?? {}
  const shown = (value) => (typeof value === 'string' ? value : JSON.stringify(value))
  const time = (seconds) => `${seconds} (${new Date(seconds * 1000).toLocaleTimeString()})`
  const isTime = (name) => ['exp', 'iat', 'nbf'].includes(name)
  showList('claims', [
    ...Object.entries(header).map(([name, value]) => [name, shown(value)]),
    ...Object.entries(claims).map(([name, value]) => [
      name,
      isTime(name) ? time(value) : shown(value),
    ]),
  ])
  showList('headers', identity.headers)
  showProblem()
}

let refreshing = false
async function refresh() {
  if (refreshing) return
  refreshing = true
  try {
    showIdentity(await ask('api/whoami'))
  } catch (error) {
    showProblem(error)
  } finally {
    refreshing = false
  }
}

function tick() {
  if (!current) return
  const life = current.token ? current.token.claims.exp - current.token.claims.iat : 60
  const left = Math.max(0, (current.expiresAt + current.skew - Date.now()) / 1000)
  byId('life').max = life
  byId('life').value = left
  byId('left').textContent =
    left > 0 ? `${Math.ceil(left)} s to live` : 'expired; asking for a new one'
  if (left === 0) void refresh()
}

function showOutcome(place, { status, user, reason, message }) {
  const isStillMe = status === 200 && user === current?.user
  const isRefused = status >= 400
  const [first, text] = isStillMe
    ? ['Let in', `but as ${user}: what was claimed is gone`]
    : isRefused
      ? [`Refused: ${status}`, [reason, message].filter(Boolean).join(', ')]
      : ['Unexpected', JSON.stringify({ status, user, reason, message })]
  place.className = `outcome ${isStillMe || isRefused ? 'good' : 'bad'}`
  place.textContent = text ? `${first} — ${text}` : first
}

async function showForgeries() {
  const items = (await ask('api/forgeries')).map(({ name, title, explains }) => {
    const item = make('li')
    const button = make('button', title)
    button.type = 'button'
    const outcome = make('p', '', 'outcome')
    outcome.hidden = true
    outcome.setAttribute('role', 'status')
    button.addEventListener('click', async () => {
      button.disabled = true
      try {
        const query = new URLSearchParams({ name })
        showOutcome(outcome, await ask(`api/forgeries?${query}`, { method: 'POST' }))
      } catch (error) {
        outcome.className = 'outcome bad'
        outcome.textContent = error.message
      }
      outcome.hidden = false
      button.disabled = false
    })
    item.append(button, make('p', explains), outcome)
    return item
  })
  byId('forgeries').replaceChildren(...items)
}

async function listMaps() {
  const place = byId('maps')
  const namespace = byId('namespace').value
  try {
    const { names, status, message } = await ask(
      `api/configmaps?${new URLSearchParams({ namespace })}`,
    )
    if (names === undefined)
      place.replaceChildren(
        make('p', `You may not: ${message}${status ? ` (${status})` : ''}`, 'bad'),
      )
    else {
      const list = make('ul')
      list.append(...names.map((name) => make('li', name)))
      place.replaceChildren(
        make('p', `${names.length} in ${namespace}, read as ${current?.user ?? 'you'}`, 'good'),
        list,
      )
    }
  } catch (error) {
    place.replaceChildren(make('p', error.message, 'bad'))
  }
}

byId('ask').addEventListener('submit', (event) => {
  event.preventDefault()
  void listMaps()
})

function openLive() {
  const chip = byId('live')
  const address = new URL('live', location.href)
  address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:'
  address.hash = ''
  address.search = ''
  const socket = new WebSocket(address)
  socket.addEventListener('message', ({ data }) => {
    const { seconds, user } = JSON.parse(data)
    chip.className = 'chip good'
    chip.textContent = `live as ${user} for ${seconds} s`
  })
  socket.addEventListener('close', ({ reason }) => {
    chip.className = 'chip bad'
    chip.textContent = reason ? `cut: ${reason}` : 'connection ended; trying again'
    setTimeout(openLive, 3_000)
  })
}

await refresh()
await showForgeries().catch(showProblem)
openLive()
setInterval(tick, 250)
