import { expect } from 'vitest'

/** A request that both servers are sent, and its name. */
export interface ProxyRequest {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly type?: string
  readonly as?: 'visitor'
}

const root = '/api/v1/namespaces/default'
const web = `${root}/services/web/proxy`

const get = (name: string, path: string, headers?: Record<string, string>): ProxyRequest => ({
  name,
  method: 'GET',
  path,
  ...(headers && { headers }),
})

/** What is asked of both, request by request. */
export const requests: readonly ProxyRequest[] = [
  get('a path and a query', `${web}/a/b?c=d&e`),
  get('a port by its number', `${root}/services/web:80/proxy/a`),
  get('a port by its name', `${root}/services/named:http/proxy/a`),
  get('a named port by its number', `${root}/services/named:8080/proxy/a`),
  get('a scheme and no port', `${root}/services/http:web:/proxy/a`),
  get('an empty scheme', `${root}/services/:web:80/proxy/a`),
  get('a slash at the end', `${web}/a/`),
  get('no slash', web),
  get('no slash and a query', `${web}?x=y`),
  { name: 'HEAD without a slash', method: 'HEAD', path: web },
  { name: 'POST without a slash', method: 'POST', path: web, body: 'x', type: 'text/plain' },
  ...['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].map((method) => ({
    name: `${method} with a body`,
    method,
    path: `${web}/x`,
    body: 'hello',
    type: 'text/plain',
  })),
  { name: 'TRACE', method: 'TRACE', path: `${web}/x` },
  { name: 'an unknown method', method: 'PROPFIND', path: `${web}/x` },
  get('a Pod', `${root}/pods/web/proxy/a?b`),
  get('a Pod and a scheme', `${root}/pods/http:web:/proxy/a`),
  get('a Pod that is not there', `${root}/pods/none/proxy/`),
  get('a Pod without an address', `${root}/pods/unplaced/proxy/`),
  get('a node that is not there', '/api/v1/nodes/none/proxy/'),
  get('a Service that is not there', `${root}/services/none/proxy/`),
  get('a port that is not there', `${root}/services/web:81/proxy/`),
  get('a port name that is not there', `${root}/services/web:x/proxy/`),
  get('a named port without its name', `${root}/services/named/proxy/`),
  get('no endpoints', `${root}/services/empty/proxy/`),
  get('no ready endpoint', `${root}/services/unready/proxy/`),
  get('an endpoint without a Pod', `${root}/services/no-pod/proxy/`),
  get('an endpoint that is not at its Pod', `${root}/services/wrong-pod/proxy/`),
  get('ExternalName', `${root}/services/outside/proxy/`),
  get('a backend that refuses', `${root}/services/closed/proxy/`),
  get('too many parts', `${root}/services/a:b:c:d/proxy/`),
  get('another scheme', `${root}/services/ftp:web:80/proxy/`),
  get('no name', `${root}/services/:80/proxy/`),
  get('an odd name', `${root}/services/WEB/proxy/`),
  get('dryRun', `${web}/?dryRun=All`),
  get('somebody without rights', `${web}/`),
  get('a page', `${web}/html`),
  get('a compressed page', `${web}/gzip`),
  get('a deflated page', `${web}/deflate`),
  get('a style sheet', `${web}/css`),
  get('a redirect', `${web}/redirect`),
  get('a relative redirect', `${web}/redirect-relative`),
  get("a redirect to the backend's address", `${web}/redirect-own`),
  get('a redirect elsewhere', `${web}/redirect-away`),
  get('cookies', `${web}/cookie`),
  get('CORS headers', `${web}/cors`),
  get('caching', `${web}/cache`),
  get('a 401', `${web}/unauthorized`),
  get('a 204', `${web}/empty`),
  get('a 500', `${web}/error`),
  get('a long answer', `${web}/long`),
  get('an encoded slash', `${web}/a%2Fb`),
  get('an empty segment', `${web}/a//b`),
  get('a climbing path', `${web}/a/../b`),
  get('headers', `${web}/h`, { 'X-Custom': 'kept', Cookie: 'a=1; b=2', TE: 'trailers' }),
  get('identity headers', `${web}/h`, {
    'X-Remote-User': 'root',
    'X-Authenticated-User': 'root',
  }),
  get('X-Forwarded headers', `${web}/h`, {
    'X-Forwarded-For': '1.2.3.4',
    'X-Forwarded-Uri': '/forged',
    'X-Forwarded-Host': 'h',
  }),
  get('impersonation', `${web}/h`, {
    'Impersonate-User': 'admin',
    'Impersonate-Group': 'system:masters',
  }),
  get('the form of the proposal', '/api/v1/proxy/namespaces/default/services/web/a'),
].map((request) =>
  request.name === 'somebody without rights' ? { ...request, as: 'visitor' } : request,
)

const seen = (url: string, more: object = {}) => ({
  method: 'GET',
  url,
  headers: { 'x-forwarded-uri': `${web}${url}`, 'x-forwarded-for': '127.0.0.1', ...more },
  body: '',
})
const status = (code: number, reason: string, message: string) => ({
  code,
  body: { code, reason, message },
})
const plain = { 'cache-control': ['no-cache, private'] }

/** Where ours answers otherwise on purpose: what is ours in place of theirs, and why. */
export const differences: readonly {
  readonly name: string
  readonly ours: object
  readonly why: string
  /** Seen most of the time: theirs depends on how the bytes of the backend come in. */
  readonly isUsual?: boolean
}[] = [
  {
    name: 'ExternalName',
    ours: status(503, 'ServiceUnavailable', 'no endpoints available for service "outside"'),
    why: 'endpoints are read from slices, of which a Service may have none; kube-apiserver 1.36 misses the Endpoints object',
  },
  {
    name: 'a backend that refuses',
    ours: {
      body: expect.objectContaining({
        code: 503,
        message: expect.stringMatching(/: cannot reach .*refused$/),
      }),
    },
    why: 'the cause is worded by the dialer, which may be a tunnel',
  },
  {
    name: 'an odd name',
    ours: status(400, 'BadRequest', 'invalid service request "WEB"'),
    why: 'a name that no Service can have is refused before anybody is asked',
  },
  {
    name: 'cookies',
    ours: {
      headers: { ...plain, 'set-cookie': [`a=1; Path=${web}/`, `b=2; Path=${web}/`] },
    },
    why: 'cookies stay with the add-on that set them: all of them share one origin',
  },
  {
    name: 'CORS headers',
    ours: { headers: plain },
    why: 'an add-on does not decide which other origins may read responses of the API',
  },
  {
    name: 'caching',
    ours: { headers: { 'cache-control': ['private, max-age=60'] } },
    why: 'one header that says one thing',
  },
  {
    name: 'a 401',
    ours: { headers: plain },
    why: 'a password would be typed for the whole origin and could not reach the add-on anyway',
  },
  {
    name: 'a long answer',
    ours: { headers: plain },
    why: 'what the add-on does not say is not guessed',
    isUsual: true,
  },
  {
    name: 'an encoded slash',
    ours: { body: seen('/a%2Fb') },
    why: 'the bytes of the path reach the add-on as they were sent',
  },
  {
    name: 'an empty segment',
    ours: { body: seen('/a//b') },
    why: 'the bytes of the path reach the add-on as they were sent',
  },
  {
    name: 'a climbing path',
    ours: {
      ...status(
        400,
        'BadRequest',
        'the path of the request is refused: it has a dot segment; send it in its plain form',
      ),
      headers: { ...plain, 'content-type': ['application/json'] },
    },
    why: 'two readers could understand it in two ways',
  },
  {
    name: 'identity headers',
    ours: { body: seen('/h') },
    why: 'no client may claim an identity to an add-on',
  },
  {
    name: 'the form of the proposal',
    ours: {
      code: 200,
      headers: { ...plain, 'content-type': ['application/json'] },
      body: {
        ...seen('/a'),
        headers: {
          'x-forwarded-uri': '/api/v1/proxy/namespaces/default/services/web/a',
          'x-forwarded-for': '127.0.0.1',
        },
      },
    },
    why: 'Kubernetes removed it in 1.10; here it is an alias',
  },
]
