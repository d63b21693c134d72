import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isLongRunning, isProxied, parseRequestInfo, proxyPrefix } from './request-info.ts'

/** The parts that are not empty, as `verb group/version ns=... resource/name/subresource`. */
function summary(method: string, url: string): string {
  const info = parseRequestInfo(method, url)
  if (!info.isResourceRequest) return `${info.verb} path ${info.path}`
  const object = [info.resource, info.name, info.subresource].join('|')
  return `${info.verb} ${info.group}/${info.version} ns=${info.namespace} ${object} rest=${info.rest}`
}

describe('paths mean what they mean in Kubernetes', () => {
  test.each([
    ['GET', '/', 'get path /'],
    ['GET', '/api', 'get path /api'],
    ['GET', '/api/v1', 'get path /api/v1'],
    ['GET', '/api/v1/', 'get path /api/v1/'],
    ['GET', '/apis', 'get path /apis'],
    ['GET', '/apis/apps', 'get path /apis/apps'],
    ['GET', '/apis/apps/v1', 'get path /apis/apps/v1'],
    ['POST', '/healthz', 'post path /healthz'],
    ['HEAD', '/healthz', 'get path /healthz'],
    ['GET', '/openapi/v3/apis/apps/v1?hash=1', 'get path /openapi/v3/apis/apps/v1'],
    ['GET', '/apix/v1/pods/a', 'get path /apix/v1/pods/a'],
    ['GET', '/api/v1/namespaces', 'list /v1 ns= namespaces|| rest='],
    ['GET', '/api/v1/namespaces/', 'list /v1 ns= namespaces|| rest='],
    ['GET', '/api/v1/namespaces/a', 'get /v1 ns=a namespaces|a| rest='],
    ['PUT', '/api/v1/namespaces/a/status', 'update /v1 ns=a namespaces|a|status rest='],
    ['PUT', '/api/v1/namespaces/a/finalize', 'update /v1 ns=a namespaces|a|finalize rest='],
    ['GET', '/api/v1/namespaces/a/pods', 'list /v1 ns=a pods|| rest='],
    ['HEAD', '/api/v1/namespaces/a/pods', 'list /v1 ns=a pods|| rest='],
    ['POST', '/api/v1/namespaces/a/pods', 'create /v1 ns=a pods|| rest='],
    ['DELETE', '/api/v1/namespaces/a/pods', 'deletecollection /v1 ns=a pods|| rest='],
    ['GET', '/api/v1/namespaces/a/pods/b', 'get /v1 ns=a pods|b| rest='],
    ['PATCH', '/api/v1/namespaces/a/pods/b', 'patch /v1 ns=a pods|b| rest='],
    ['DELETE', '/api/v1/namespaces/a/pods/b', 'delete /v1 ns=a pods|b| rest='],
    ['GET', '/api/v1/namespaces/a/pods/b/log', 'get /v1 ns=a pods|b|log rest='],
    ['GET', '/api/v1/namespaces/a/pods/b/log/c', 'get /v1 ns=a pods|b|log rest=/c'],
    ['GET', '/api/v1/nodes', 'list /v1 ns= nodes|| rest='],
    ['GET', '/api/v1/nodes/n', 'get /v1 ns= nodes|n| rest='],
    ['GET', '/apis/apps/v1/deployments', 'list apps/v1 ns= deployments|| rest='],
    ['GET', '/apis/a.b/v1/namespaces/n/xs/y', 'get a.b/v1 ns=n xs|y| rest='],
    ['GET', '/api/v1/pods?watch=true', 'watch /v1 ns= pods|| rest='],
    ['GET', '/api/v1/pods?watch=1', 'watch /v1 ns= pods|| rest='],
    ['GET', '/api/v1/pods?watch', 'watch /v1 ns= pods|| rest='],
    ['GET', '/api/v1/pods?watch=False', 'list /v1 ns= pods|| rest='],
    ['GET', '/api/v1/pods?watch=0&watch=1', 'list /v1 ns= pods|| rest='],
    ['GET', '/api/v1/pods?%77atch=1', 'watch /v1 ns= pods|| rest='],
    ['GET', '/api/v1/nodes/n?watch=1', 'get /v1 ns= nodes|n| rest='],
    ['GET', '/api/v1/watch/pods', 'watch /v1 ns= pods|| rest='],
    ['GET', '/api/v1/watch/namespaces/a/pods', 'watch /v1 ns=a pods|| rest='],
    ['GET', '/api/v1/watch/namespaces/a/pods/b', 'watch /v1 ns=a pods|b| rest='],
    [
      'GET',
      '/api/v1/watch/namespaces/a/pods?fieldSelector=metadata.name=b',
      'watch /v1 ns=a pods|| rest=',
    ],
    ['GET', '/api/v1/namespaces/a/pods/system%3Ab', 'get /v1 ns=a pods|system:b| rest='],
    ['GET', '/api/v1/namespaces/a/pods/%C3%A9', 'get /v1 ns=a pods|é| rest='],
    ['GET', '/%68ealthz', 'get path /healthz'],
  ])('%s %s', (method, url, expected) => {
    expect(summary(method, url)).toBe(expected)
  })
})

describe('the path behind a service proxy is kept as it was sent', () => {
  test.each([
    ['/api/v1/namespaces/a/services/s/proxy', 'get /v1 ns=a services|s|proxy rest='],
    ['/api/v1/namespaces/a/services/s/proxy/', 'get /v1 ns=a services|s|proxy rest=/'],
    [
      '/api/v1/namespaces/a/services/s:80/proxy/x/y?z',
      'get /v1 ns=a services|s:80|proxy rest=/x/y',
    ],
    [
      '/api/v1/namespaces/a/services/s/proxy//x%2fy/',
      'get /v1 ns=a services|s|proxy rest=//x%2fy/',
    ],
    ['/api/v1/nodes/n/proxy/pods', 'get /v1 ns= nodes|n|proxy rest=/pods'],
    ['/api/v1/proxy/namespaces/a/services/s', 'get /v1 ns=a services|s|proxy rest='],
    ['/api/v1/proxy/namespaces/a/services/s/x%2Fy', 'get /v1 ns=a services|s|proxy rest=/x%2Fy'],
    ['/api/v1/proxy/nodes/n/logs/', 'get /v1 ns= nodes|n|proxy rest=/logs/'],
  ])('%s', (url, expected) => {
    expect(summary('GET', url)).toBe(expected)
  })
})

describe('a field selector that requires one name asks about that object only', () => {
  test.each([
    ['metadata.name=x', 'x'],
    ['metadata.name%3D%3Dx', 'x'],
    ['metadata.namespace=a,metadata.name=x', 'x'],
    ['metadata.name!=x', ''],
    ['metadata.names=x', ''],
    ['metadata.name=', ''],
    ['metadata.name=..', ''],
    ['metadata.name=a%2Fb', ''],
    ['metadata.name=a%5C,b', ''],
    ['status.phase=Running', ''],
  ])('%s', (selector, name) => {
    const info = parseRequestInfo('GET', `/api/v1/namespaces/a/pods?fieldSelector=${selector}`)
    expect([info.verb, info.name]).toEqual(['list', name])
    expect(parseRequestInfo('DELETE', `/api/v1/pods?fieldSelector=${selector}`).name).toBe('')
  })
})

describe('a path that two readers could understand in two ways is refused', () => {
  test.each([
    '*',
    'api/v1/pods',
    'https://host/api/v1/pods',
    '//api/v1/pods',
    '/api//v1/pods',
    '/api/v1//pods',
    '/api/v1/pods//',
    '/api/v1/namespaces//secrets',
    '/api/v1/namespaces/a/../b/secrets',
    '/api/v1/namespaces/a/%2e%2e/b',
    '/api/v1/namespaces/a/%2E/b',
    '/api/v1/namespaces/a%2fsecrets/b',
    '/api/v1/namespaces/a/pods/b%2fc',
    '/api/v1/namespaces/a/pods/b%5cc',
    '/api/v1/namespaces/a/pods/b%00',
    '/api/v1/namespaces/a/pods/b%0a',
    '/api/v1/namespaces/a/pods/b%252fc',
    '/api/v1/namespaces/a/pods/b%',
    '/api/v1/namespaces/a/pods/b%zz',
    '/api/v1/namespaces/a/pods/%ff',
    '/api/v1/namespaces/a/pods/b\\c',
    '/api/v1/namespaces/a/pods/b#c',
    '/api/v1/namespaces/a/pods/\u00e9',
    '/healthz/../metrics',
    '/healthz/%2e%2e/metrics',
    '/healthz//',
    '/healthz%2fping',
    '/api/v1/namespaces/a/services/s/proxy/../../secrets',
    '/api/v1/namespaces/a/services/s/proxy/%2e%2E/x',
    '/api/v1/namespaces/a/services/s/proxy/x/..',
    '/api/v1/namespaces/a/services/s/proxy/x%00',
    '/api/v1/namespaces/a/services/s/proxy/x%2',
    '/api/v1/namespaces/a/services/s/proxy/..%2fx',
    '/api/v1/namespaces/a/services/s/proxy/x%2F%2e%2e',
    '/api/v1/namespaces/a/services/s/proxy/x%5c..%5cy',
    '/api/v1/proxy/namespaces/a/services/s/../x',
    '/api/v1/namespaces/a%2fservices%2fs/proxy/x',
    '/api/v1/namespaces/a/services/s%2fproxy/x',
    '/api/v1/watch/namespaces/a/services//s/proxy/x',
    '/api/v1/watch',
    '/api/v1/proxy',
  ])('%s', (url) => {
    expect(() => parseRequestInfo('GET', url)).toThrow(
      expect.objectContaining({ reason: 'BadRequest' }),
    )
  })
})

const base = '/api/v1/namespaces/ns/services'
const dash = { resource: 'services', namespace: 'ns', name: 'dash', port: '', scheme: '' }

test.each([
  [`${base}/dash/proxy/a/b`, `${base}/dash/proxy`, '/a/b', dash],
  [`${base}/dash/proxy`, `${base}/dash/proxy`, '', dash],
  [`${base}/dash:/proxy`, `${base}/dash/proxy`, '', dash],
  [`${base}/dash:web/proxy/`, `${base}/dash:web/proxy`, '/', { ...dash, port: 'web' }],
  [`${base}/:dash:8080/proxy/`, `${base}/dash:8080/proxy`, '/', { ...dash, port: '8080' }],
  [`${base}/https:dash:/proxy/`, `${base}/https:dash:/proxy`, '/', { ...dash, scheme: 'https' }],
  [
    `${base}/http:dash:http/proxy/`,
    `${base}/http:dash:http/proxy`,
    '/',
    { ...dash, scheme: 'http', port: 'http' },
  ],
  [`${base}/d%61sh/pr%6Fxy/x%2Fy`, `${base}/dash/proxy`, '/x%2Fy', dash],
  ['/api/v1/proxy/namespaces/ns/services/dash/x', `${base}/dash/proxy`, '/x', dash],
  ['/api/v1/proxy/namespaces/ns/services/dash', `${base}/dash/proxy`, '', dash],
  [
    '/api/v1/namespaces/ns/pods/p.q:80/proxy/x',
    '/api/v1/namespaces/ns/pods/p.q:80/proxy',
    '/x',
    { ...dash, resource: 'pods', name: 'p.q', port: '80' },
  ],
  [
    '/api/v1/proxy/nodes/https:n.example:10250/metrics',
    '/api/v1/nodes/https:n.example:10250/proxy',
    '/metrics',
    { resource: 'nodes', namespace: '', name: 'n.example', port: '10250', scheme: 'https' },
  ],
])('%s is proxied; its canonical prefix is %s [ADDON-P1]', (url, prefix, rest, proxy) => {
  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    const info = parseRequestInfo(method, url)
    expect(info.proxy).toEqual(proxy)
    expect([info.proxy && proxyPrefix(info.proxy), info.rest]).toEqual([prefix, rest])
    expect(isProxied(info)).toBe(true)
  }
})

test('a proxy of another API group has no target, and its responses are proxied content all the same', () => {
  const info = parseRequestInfo('GET', '/apis/cluster.example/v1/clusters/c/proxy/api/v1/pods')
  expect([isProxied(info), info.proxy, info.rest]).toEqual([true, undefined, '/api/v1/pods'])
})

test.each([
  `${base}/dash`,
  `${base}/dash/status`,
  `${base}/dash/proxyx`,
  '/x/api/v1/namespaces/ns/services/dash/proxy',
])('%s is not proxied', (url) => {
  const info = parseRequestInfo('GET', url)
  expect([isProxied(info), info.proxy]).toEqual([false, undefined])
})

describe('a proxy in a scope or of a kind that has none is rejected: rights are checked where it is', () => {
  test.each([
    '/api/v1/namespaces/a/nodes/n/proxy/x',
    '/api/v1/proxy/namespaces/a/nodes/n/x',
    '/api/v1/services/s/proxy/x',
    '/api/v1/pods/p/proxy/x',
    '/api/v1/proxy/services/s/x',
    '/api/v1/namespaces/A/services/s/proxy/x',
    '/api/v1/namespaces/a.b/services/s/proxy/x',
    '/api/v1/namespaces/a/secrets/s/proxy/x',
    '/api/v1/proxy/namespaces/a/secrets/s',
    '/api/v1/proxy/watch/namespaces/a/services/s',
    '/api/v1/proxy/proxy/nodes/n',
    '/apis/apps/v1/proxy/namespaces/a/services/s',
  ])('%s', (url) => {
    expect(() => parseRequestInfo('GET', url)).toThrow(
      expect.objectContaining({ reason: 'NotFound' }),
    )
  })

  test.each([
    '',
    ':80',
    'a:b:c:d',
    'ftp:web:80',
    'http::80',
    'HTTPS:web:',
    'web_',
    'w%C3%A9b',
    'web:8%200',
    '-',
    'a%20b',
    'a.b',
  ])('the id %j is a 400 [ADDON-T55]', (id) => {
    const url = `/api/v1/proxy/namespaces/a/services/${id}`
    expect(() => parseRequestInfo('GET', url)).toThrow(/^invalid service request "/)
  })
})

describe('under /watch/ there are only objects and collections, and only GET', () => {
  const methods = ['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
  test.each([
    '/api/v1/watch/namespaces/a/services/s/proxy',
    '/api/v1/watch/namespaces/a/services/s:80/proxy/x',
    '/api/v1/watch/nodes/n/proxy/metrics',
    '/api/v1/watch/namespaces/a/pods/p/log',
    '/api/v1/watch/namespaces/a/pods/p/exec',
    '/api/v1/watch/namespaces/a/status',
    '/api/v1/watch/namespaces/a/finalize',
    '/api/v1/watch/proxy/namespaces/a/services/s',
    '/apis/apps/v1/watch/namespaces/a/deployments/d/scale',
  ])('%s', (url) => {
    for (const method of ['GET', ...methods])
      expect(() => parseRequestInfo(method, url)).toThrow(
        expect.objectContaining({ reason: 'NotFound' }),
      )
  })

  test.each(methods)('%s', (method) => {
    for (const url of ['/api/v1/watch/pods', '/api/v1/watch/namespaces/a/pods/p'])
      expect(() => parseRequestInfo(method, url)).toThrow(
        expect.objectContaining({ reason: 'MethodNotAllowed' }),
      )
  })
})

test.each([
  ['OPTIONS', '/api/v1/namespaces/a/pods/b'],
  ['constructor', '/api/v1/namespaces/a/pods/b'],
  ['get', '/api/v1/pods'],
  ['TRACE', '/api/v1/namespaces/a/services/s/proxy'],
  ['CONNECT', '/healthz'],
  ['', '/version'],
])('the method %j has no verb at %s', (method, url) => {
  expect(() => parseRequestInfo(method, url)).toThrow(
    expect.objectContaining({ reason: 'MethodNotAllowed' }),
  )
})

test('no path is read as a longer one than it is: every part is one of its decoded segments', () => {
  const segment = fc.stringMatching(/^[a-z.%/2efF\\]{1,6}$/)
  fc.assert(
    fc.property(fc.array(segment, { maxLength: 7 }), (parts) => {
      const url = `/api/v1/${parts.join('/')}`
      let info: ReturnType<typeof parseRequestInfo>
      try {
        info = parseRequestInfo('GET', url)
      } catch {
        return
      }
      const known = new Set(url.split('/').map((part) => safeDecode(part)))
      for (const part of [info.namespace, info.resource, info.name, info.subresource]) {
        expect(known.has(part)).toBe(true)
        expect(part).not.toMatch(/[/\\%]|^\.{1,2}$/)
      }
    }),
    { numRuns: 2_000 },
  )
})

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

test.each([
  ['/api/v1/pods?watch=1', true],
  ['/api/v1/namespaces/a/pods/b/exec', true],
  ['/api/v1/namespaces/a/services/s/proxy/x', true],
  ['/api/v1/namespaces/a/pods/b/status', false],
  ['/api/v1/pods', false],
  ['/log', false],
])('%s is long-running: %s', (url, expected) => {
  expect(isLongRunning(parseRequestInfo('GET', url))).toBe(expected)
})
