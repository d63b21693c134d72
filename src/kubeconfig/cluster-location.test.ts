import { describe, expect, test } from 'vitest'
import { clusterAddresses } from './cluster-location.ts'
import { problemsOfCluster } from './problems-of-cluster.ts'

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
  ])('are refused if the location is or has %s', (_name, location) => {
    expect(problemsOfCluster('c', clusterWith(location))).toEqual([
      expect.stringContaining('sallyport.dev/cluster-location must have addresses'),
    ])
  })
})
