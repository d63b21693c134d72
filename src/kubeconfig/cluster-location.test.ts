import { describe, expect, test } from 'vitest'
import { clusterAddresses, clusterLocation, withLocation } from './cluster-location.ts'
import { parseKubeconfig } from './parse.ts'
import { problemsOfCluster } from './validate.ts'
import { renderKubeconfig } from './write.ts'

const server = 'https://a:6443'
const clusterWith = (location: unknown) => ({
  server,
  extensions: new Map([['sallyport.dev/cluster-location', location]]),
})

describe('the addresses of a cluster', () => {
  test('are its server and those of its location, each once', () => {
    expect(clusterAddresses({ server })).toEqual([server])
    const cluster = clusterWith({
      addresses: ['https://b', server, 'https://b', 'https://[::1]:1'],
    })
    expect(clusterAddresses(cluster)).toEqual([server, 'https://b', 'https://[::1]:1'])
    expect(problemsOfCluster('c', cluster)).toEqual([])
  })

  test.each([
    ['text', 'https://b'],
    ['no list', { addresses: 'https://b' }],
    ['no URL', { addresses: ['b:6443'] }],
    ['no TLS', { addresses: ['http://b'] }],
    ['a number', { addresses: [1] }],
    ['a password', { addresses: ['https://me:secret@b'] }],
    ['an id that is no text', { clusterId: 1 }],
    ['an empty id', { clusterId: '' }],
    ['roots of the system that are no yes or no', { systemRoots: 'yes' }],
  ])('are refused if the location is or has %s', (_name, location) => {
    expect(problemsOfCluster('c', clusterWith(location))).toEqual([
      expect.stringContaining('sallyport.dev/cluster-location may have addresses'),
    ])
  })
})

test('addresses of another path are refused, since one path goes before every request', () => {
  expect(problemsOfCluster('c', clusterWith({ addresses: ['https://b/prefix'] }))).toEqual([
    expect.stringContaining('every address must have the path of server'),
  ])
})

describe('a location [DISC-R49]', () => {
  const location = {
    clusterId: '7d5e',
    addresses: [server, 'https://b:6443'],
    rootsPem: 'roots\n',
    systemRoots: true,
  } as const

  test('survives a kubeconfig: set of addresses, roots, id and the roots of the system', async () => {
    const clusters = new Map([['c', withLocation({ server: 'https://old' }, location)]])
    const config = { currentContext: '', clusters, users: new Map(), contexts: new Map() }
    const read = await parseKubeconfig(await renderKubeconfig(config), 'it')
    expect(clusterLocation(read.clusters.get('c') ?? { server: '' })).toEqual(location)
  })

  test('of one address and nothing else needs no extension', () => {
    const cluster = withLocation({ server, tlsServerName: 'x' }, { addresses: [server] })
    expect(cluster).toEqual({ server, tlsServerName: 'x' })
    expect(withLocation(withLocation(cluster, location), { addresses: [server] })).toEqual(cluster)
  })

  test('leaves extensions of others, also unknown fields of its own, and a file of roots', () => {
    const cluster = {
      server,
      certificateAuthority: '/ca.crt',
      extensions: new Map<string, unknown>([
        ['minikube', { a: 1 }],
        ['sallyport.dev/cluster-location', { clusterId: 'old', later: 2 }],
      ]),
    }
    const moved = withLocation(cluster, { addresses: ['https://b'], clusterId: 'new' })
    expect(moved).toEqual({
      server: 'https://b',
      certificateAuthority: '/ca.crt',
      extensions: new Map<string, unknown>([
        ['minikube', { a: 1 }],
        ['sallyport.dev/cluster-location', { clusterId: 'new', later: 2 }],
      ]),
    })
    expect(withLocation(cluster, location).certificateAuthority).toBeUndefined()
  })
})
