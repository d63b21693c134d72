// An add-on that shows its user. It is started as a Pod of the Service whoami (see README.md) and writes no
// authentication code: the guard lets nobody through whom the API server has not vouched for.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import process from 'node:process'
import { createGuard } from 'sallyport/guard'
import { listConfigMaps, tokenKeys } from './cluster.js'
import { forge, forgeries } from './forgeries.js'
import { describeToken, identityOf } from './identity.js'
import { acceptLive } from './live.js'

const {
  POD_IP: host = '127.0.0.1',
  PORT: port = '8080',
  POD_NAMESPACE: namespace = 'default',
  WHOAMI_SERVICE: service = 'whoami',
  SALLYPORT_SERVICE_ACCOUNT_DIR: directory = '/var/run/secrets/kubernetes.io/serviceaccount',
  // For work on the page itself: who a request of this machine is, without a cluster.
  WHOAMI_DEVELOPMENT_USER: developmentUser,
} = process.env

const giveUp = ({ message, hint }) => {
  process.stderr.write(`error: ${message}\n${hint ? `hint: ${hint}\n` : ''}`)
  process.exit(1)
}

const guard = await createGuard({
  audiences: [`${namespace}/${service}`],
  output: { userHeader: 'X-Authenticated-User', groupsHeader: 'X-Authenticated-Groups' },
  ...(developmentUser
    ? { developmentUser, x5c: false }
    : {
        caFile: `${directory}/ca.crt`,
        jwks: { load: (signal) => tokenKeys(directory, signal) },
      }),
}).catch(giveUp)

const script = 'text/javascript; charset=utf-8'
const page = {
  '/': ['text/html; charset=utf-8', 'index.html'],
  '/page.css': ['text/css; charset=utf-8', 'page.css'],
  '/page.js': [script, 'page.js'],
  '/document.js': [script, 'document.js'],
  '/identity.js': [script, 'identity.js'],
  '/attempts.js': [script, 'attempts.js'],
}
const security = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  // The API server tells pages of different add-ons apart by it.
  'Referrer-Policy': 'same-origin',
  'Cache-Control': 'no-store',
}

const actions = {
  'GET /api/whoami': (request) => ({
    ...identityOf(request, guard.userOf(request)),
    service: `${namespace}/${service}`,
    token: describeToken(tokens.get(request)),
  }),
  'GET /api/forgeries': () => forgeries,
  'POST /api/forgeries': (request, query) =>
    forge(query.get('name'), { token: tokens.get(request), host, port: Number(port) }),
  'GET /api/configmaps': (request, query) =>
    listConfigMaps(guard.userOf(request), query.get('namespace') || 'default', directory),
}

/** The token that came with a request; the guard takes it out of the headers. */
const tokens = new WeakMap()

async function answer(request, response) {
  const { pathname, searchParams } = new URL(request.url, 'http://whoami')
  const file = request.method === 'GET' && Object.hasOwn(page, pathname) && page[pathname]
  if (file) {
    const body = await readFile(new URL(`page/${file[1]}`, import.meta.url))
    response.writeHead(200, { ...security, 'Content-Type': file[0] }).end(body)
    return
  }
  const name = `${request.method} ${pathname}`
  const action = Object.hasOwn(actions, name) && actions[name]
  const [status, result] = action
    ? [200, await action(request, searchParams)]
    : [404, { message: `there is no ${name}` }]
  const headers = { ...security, 'Content-Type': 'application/json' }
  response.writeHead(status, headers).end(JSON.stringify(result))
}

const guarded = guard.listener((request, response) => {
  answer(request, response).catch((error) => {
    process.stderr.write(`${error.stack}\n`)
    response.writeHead(500, { ...security, 'Content-Type': 'application/json' })
    response.end(JSON.stringify({ message: 'something went wrong; the log says what' }))
  })
})
const guardedUpgrade = guard.upgradeListener((request, socket) => {
  const { pathname } = new URL(request.url, 'http://whoami')
  if (pathname === '/live') acceptLive(request, socket, guard.userOf(request))
  else socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n')
})

const keepToken = (request) => tokens.set(request, request.headers.authorization?.slice(7))
const server = createServer((request, response) => {
  keepToken(request)
  guarded(request, response)
})
server.on('upgrade', (request, socket, head) => {
  keepToken(request)
  guardedUpgrade(request, socket, head)
})
server.on('error', giveUp)
// One address, never all of them: nothing but the guard's port may be reachable.
server.listen(Number(port), host, () => {
  process.stdout.write(`whoami serves on ${host}:${port}\n`)
})
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    guard.close()
    server.close()
    server.closeAllConnections()
  })
}
