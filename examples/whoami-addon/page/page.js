import { listMaps, showForgeries } from './attempts.js'
import { ask, byId, showProblem } from './document.js'
import { showIdentity } from './identity.js'

const retryMs = 3_000
const longestRetryMs = 30_000

let current
let askedAt = Number.NEGATIVE_INFINITY
const currentUser = () => current?.user ?? 'you'

async function refresh() {
  // Whoever was refused is not asked for four times a second.
  if (performance.now() - askedAt < retryMs) return
  askedAt = performance.now()
  try {
    const identity = await ask('api/whoami')
    current = { ...identity, skew: Date.now() - identity.now }
    showIdentity(identity)
    showProblem()
  } catch (error) {
    showProblem(error)
  }
}

function tick() {
  if (!current) return
  const { token, expiresAt, skew } = current
  const left = Math.max(0, (expiresAt + skew - Date.now()) / 1000)
  byId('life').max = token ? token.claims.exp - token.claims.iat : 60
  byId('life').value = left
  byId('left').textContent =
    left > 0 ? `${Math.ceil(left)} s to live` : 'expired; asking for a new one'
  if (left === 0) void refresh()
}

/** A WebSocket of the page: the browser cannot give it a credential, and it is authenticated all the same. */
function openLive(retryAfterMs = retryMs) {
  const address = new URL('live', location.href)
  address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:'
  address.hash = ''
  address.search = ''
  let waitMs = retryAfterMs
  let wasOpen = false
  const socket = new WebSocket(address)
  socket.addEventListener('message', ({ data }) => {
    const { seconds, user } = JSON.parse(data)
    waitMs = retryMs
    wasOpen = true
    showLive('good', `live as ${user}`, ` for ${seconds} s`)
  })
  socket.addEventListener('close', () => {
    // Whoever may only look gets none, and the browser does not say why.
    showLive('bad', wasOpen ? 'connection ended; trying again' : 'no live connection; trying again')
    // If the user was cut off, this says so.
    void refresh()
    setTimeout(openLive, waitMs, Math.min(waitMs * 2, longestRetryMs))
  })
}

/** The seconds are not for screen readers, which would say every one of them. */
function showLive(kind, state, age = '') {
  byId('live').className = `chip ${kind}`
  byId('live-age').textContent = age
  const place = byId('live-state')
  if (place.textContent !== state) place.textContent = state
}

byId('ask').addEventListener('submit', (event) => {
  event.preventDefault()
  void listMaps(currentUser)
})

await refresh()
tick()
await showForgeries(currentUser).catch(showProblem)
openLive()
setInterval(tick, 250)
