import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ProxyTarget, proxyId, proxyPrefix } from '../core/index.ts'
import { addonHost, isHashedAddonHost, readAddonHost } from './addon-host.ts'

const service = (namespace: string, id: string): ProxyTarget => {
  const parts = id.split(':')
  const [scheme = '', name = '', port = ''] = parts.length === 3 ? parts : ['', ...parts]
  return { resource: 'services', namespace, name, port, scheme: scheme as ProxyTarget['scheme'] }
}

describe("[SEC-R1801] the host of an add-on's own origin", () => {
  test.each([
    ['dash', 'dash--kube-system'],
    ['dash:http', 'http--dash--kube-system'],
    ['dash:8080', '8080--dash--kube-system'],
    ['https:dash:https', 'https--dash--kube-system'],
    ['https:dash:443', '443--dash--kube-system'],
    ['https:dash:web-https', 'web-https--dash--kube-system'],
    ['http:dash:443', 'http--443--dash--kube-system'],
    ['https:dash:9000', 'https--9000--dash--kube-system'],
    ['https:dash:', 'https--0--dash--kube-system'],
    ['http:dash:', 'http--0--dash--kube-system'],
  ])('of %s is %s', (id, label) => {
    const target = service('kube-system', id)
    expect(addonHost(target)).toBe(`${label}.localhost`)
    expect(readAddonHost(`${label}.localhost`)).toEqual(target)
  })

  test.each([
    ['a port that stands for https, without a scheme', 'dash:443', 'ns'],
    ['two hyphens in the name', 'a--b', 'ns'],
    ['two hyphens in the namespace', 'a', 'b--c'],
    ['two hyphens in the port', 'a:b--c', 'ns'],
    ['a port of zero', 'dash:0', 'ns'],
    ['capitals in the port', 'dash:Web', 'ns'],
    ['a name that browsers decode', 'xn', 'ns'],
    ['a port that browsers decode', 'dash:xn', 'ns'],
    ['too many characters', `dash:${'p'.repeat(20)}`, 'n'.repeat(63)],
  ])('with %s is hashed', (_why, id, namespace) => {
    const host = addonHost(service(namespace, id))
    expect(isHashedAddonHost(host)).toBe(true)
    expect(readAddonHost(host)).toBeUndefined()
  })

  test.each([
    ['localhost'],
    ['127.0.0.1'],
    ['dash.localhost'],
    ['.localhost'],
    ['a..localhost'],
    ['dash.ns.localhost'],
    ['a--b.ns.localhost'],
    ['-a--b.localhost'],
    ['a---b.localhost'],
    ['a----b.localhost'],
    ['a_b--c.localhost'],
    ['DASH--ns.localhost'],
    ['ftp--80--dash--ns.localhost'],
    ['x--http--80--dash--ns.localhost'],
    ['0--dash--ns.localhost'],
    ['https--443--dash--ns.localhost'], // the same Service as 443--dash--ns
    ['dash--ns.example.com'],
    [`${'a'.repeat(64)}--ns.localhost`],
  ])('is not %s', (host) => expect(readAddonHost(host)).toBeUndefined())

  const text = (pattern: RegExp) => fc.stringMatching(pattern)
  const name = fc.oneof(
    text(/^[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?$/),
    text(/^[a-b](-{1,3}[a-b0-1]){0,4}$/),
    fc.constantFrom('xn', 'https', 'http', '0', '443', 'a'.repeat(63), 'http--80'),
  )
  const target = fc.record({
    resource: fc.constant('services' as const),
    namespace: name,
    name,
    port: fc.oneof(fc.constant(''), name),
    scheme: fc.constantFrom('' as const, 'http' as const, 'https' as const),
  })

  test('is one valid DNS label that reads back as the same Service or as none', () => {
    fc.assert(
      fc.property(target, (each) => {
        const host = addonHost(each)
        expect(host).toMatch(/^(?!xn--)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.localhost$/)
        expect(new URL(`http://${host}:8001/`).hostname).toBe(host)
        expect(readAddonHost(host)).toEqual(isHashedAddonHost(host) ? undefined : each)
      }),
    )
  })

  test('differs for every two Services, ports or schemes', () => {
    fc.assert(
      fc.property(target, target, (one, other) => {
        const isSame = proxyPrefix(one) === proxyPrefix(other)
        expect(addonHost(one) === addonHost(other)).toBe(isSame)
      }),
    )
    // Every way to cut one text into parts is another host.
    const cuts = ['a:b--c', 'a--b:c', 'a--b--c', 'http:a--b:c', 'http:a:b--c', 'a:b', 'http:a:b']
    const hosts = ['n', 'n--m', 'b--c'].flatMap((ns) => cuts.map((id) => service(ns, id)))
    expect(new Set(hosts.map(addonHost)).size).toBe(hosts.length)
    expect(proxyId(service('n', 'http:a:b'))).toBe('http:a:b')
  })
})
