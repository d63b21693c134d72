// Who the user is, the way on which the add-on learned it, and the token that proved it.
import { byId, make } from './document.js'

const meanings = {
  alg: 'how it is signed',
  typ: 'what kind of token it is; as a credential it is refused',
  kid: 'which key signed it',
  x5c: "the API server's own, under the CA that every Pod knows",
  iss: 'who made it',
  sub: 'who you are',
  aud: 'the one Service that may believe it',
  exp: 'when it ends',
  iat: 'when it was made',
  nbf: 'when it begins',
  jti: 'its own number',
  uid: 'your number',
  groups: 'because the Service asks for them',
}
const userHeader = 'X-Authenticated-User'
const times = new Set(['exp', 'iat', 'nbf'])

/** Shows an answer to "who am I". */
export function showIdentity(identity) {
  byId('user').textContent = identity.user
  document.title = `${identity.user}: who am I?`
  byId('groups').replaceChildren(...identity.groups.map((group) => make('li', group)))
  byId('hops').replaceChildren(...hopsOf(identity).map(hopItem))
  if (!identity.token) {
    byId('way-hint').textContent = 'There is no cluster behind this page, and no token to look at.'
    for (const section of document.querySelectorAll('.needs-token')) section.hidden = true
  }
  const { header = {}, claims = {} } = identity.token ?? {}
  const told = { ...header, ...claims }
  showPairs(
    'claims',
    Object.entries(told).map(([name, value]) => [name, asText(name, value), meanings[name]]),
  )
  showPairs('headers', identity.headers.toSorted(byImportance))
}

function hopsOf({ user, groups, audience, token, headers }) {
  const [, stated] = headers.find(([name]) => name === userHeader.toLowerCase()) ?? []
  const header = `${userHeader}: ${stated}`
  if (!token)
    return [
      ['Your browser', `asked ${location.host}, which is this machine`],
      ['Guard', 'was told by WHOAMI_DEVELOPMENT_USER who that is, and asked for no token', header],
    ]
  const company =
    groups.length > 0 ? ` in ${groups.length} group${groups.length > 1 ? 's' : ''}` : ''
  const signed = token.header.x5c
    ? 'signed with its serving key'
    : 'signed with a key that it publishes'
  return [
    [
      'Your browser',
      `asked ${location.host}, and sent no credential at all`,
      `GET ${location.pathname}`,
    ],
    [
      'Local proxy',
      'kubectl proxy or sallyport proxy',
      'the credential of your kubeconfig, over TLS',
    ],
    [
      'API server',
      `knew you as ${user}${company}; asked RBAC whether you may use ${audience}; took your credential out and put a token in, ${signed}`,
      'Authorization: Bearer eyJ…',
    ],
    [
      'Guard',
      `checked signature, times, and that it is for ${audience}; took the token out`,
      header,
    ],
    ['Add-on', 'read that one header'],
  ]
}

function hopItem([title, text, sent]) {
  const item = make('li')
  item.append(make('strong', title), make('span', text))
  if (sent) item.append(make('code', sent))
  return item
}

function asText(name, value) {
  if (times.has(name)) return `${new Date(value * 1000).toLocaleTimeString()} (${value})`
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** What tells the user comes first. */
const byImportance = ([one], [other]) => rank(other) - rank(one) || one.localeCompare(other)
const rank = (name) => (name.startsWith('x-authenticated-') ? 1 : 0)

function showPairs(id, pairs) {
  const items = pairs.flatMap(([name, value, meaning]) => {
    const detail = make('dd', value)
    if (meaning) detail.append(make('small', meaning))
    return [make('dt', name), detail]
  })
  byId(id).replaceChildren(...items)
}
