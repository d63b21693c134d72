import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Logger, silentLogger } from '../../core/index.ts'
import { type Discovery, discoverCluster } from './discover-cluster.ts'
import { freeAddress, LabCluster, labTokenText } from './discovery-lab.suite.ts'
import type {
  DiscoveryMethod,
  DiscoveryOrder,
  DiscoveryParts,
  DiscoveryProgress,
} from './options.ts'

let lab: LabCluster
beforeEach(async () => {
  lab = await LabCluster.open()
})
afterEach(() => lab.close())

const byToken = (address = lab.address): DiscoveryMethod => ({
  by: 'token',
  addresses: [address],
  token: labTokenText,
})

const find = (order: Partial<DiscoveryOrder> = {}, parts: DiscoveryParts = {}) =>
  discoverCluster({ method: byToken(), timeoutMs: 0, ...order }, parts)

const expected = (proofs: Discovery['proofs']) => ({
  cluster: { server: lab.address, certificateAuthorityData: lab.ca.bundlePem },
  advertised: lab.address,
  asked: lab.address,
  proofs,
  pins: [lab.pin],
  warnings: [],
})

describe('[DISC-R1, DISC-R3] address and token', () => {
  test('find a cluster that understands signed requests, by two of them', async () => {
    expect(await find()).toEqual(expected(['signed-answer', 'second-fetch']))
    expect(lab.requests).toHaveLength(2)
  })

  test('find it with anonymous access off [DISC-S7]', async () => {
    lab.anonymous = false
    expect(await find()).toEqual(expected(['signed-answer', 'second-fetch']))
  })

  test('find a cluster as Kubernetes ships it', async () => {
    lab.knowsSignedRequests = false
    expect(await find()).toEqual(expected(['signed-document', 'second-fetch']))
    expect(lab.requests.map(({ authorization }) => authorization !== undefined)).toEqual([
      true,
      false,
      false,
    ])
  })

  test('find it with pins', async () => {
    const order = { pins: [lab.pin] }
    expect(await find(order)).toEqual(expected(['signed-answer', 'pins', 'second-fetch']))
  })

  test('find it at the second address when the first is silent [DISC-R45]', async () => {
    const method = {
      ...byToken(),
      addresses: [await freeAddress(), lab.address],
    } as DiscoveryMethod
    expect(await find({ method })).toMatchObject({ asked: lab.address })
  })

  test('find it on IPv6 and below a path [DISC-R21, DISC-T12]', async () => {
    const gate = await LabCluster.open({ host: '::1', prefix: '/clusters/a' })
    const found = await find({ method: byToken(`${gate.address}/clusters/a`) })
    expect(found.cluster.server).toBe(`${gate.address}/clusters/a`)
    expect(gate.requests[0]?.path).toMatch(/^\/clusters\/a\/api\/v1\//)
    await gate.close()
  })

  test('tell step by step what happens', async () => {
    const steps: DiscoveryProgress[] = []
    await find({}, { onProgress: (progress) => steps.push(progress) })
    expect(steps).toEqual([
      { step: 'asking', address: lab.address },
      { step: 'proven', proof: 'signed-answer' },
      { step: 'proven', proof: 'second-fetch' },
    ])
  })

  test('the name of the server is sent in TLS [DISC-R25]', async () => {
    lab.advertised = `https://localhost:${lab.port}`
    await find({ method: byToken(`localhost:${lab.port}`) })
    expect(lab.requests.map(({ serverName }) => serverName)).toEqual(['localhost', 'localhost'])
  })
})

describe('[DISC-C7] an address that is announced', () => {
  test('is tried, and used from then on', async () => {
    lab.advertised = `https://localhost:${lab.port}`
    const steps: DiscoveryProgress[] = []
    const found = await find({}, { onProgress: (progress) => steps.push(progress) })
    expect(found).toMatchObject({
      cluster: { server: lab.advertised },
      advertised: lab.advertised,
      asked: lab.address,
    })
    expect(steps).toContainEqual({ step: 'probing', address: lab.advertised })
  })

  test('and is not reached is told with both, and what to do', async () => {
    lab.advertised = await freeAddress()
    const finding = find()
    await expect(finding).rejects.toMatchObject({
      reason: 'advertised-address-unreachable',
      hint: expect.stringContaining(`--keep-address uses ${lab.address}`),
    })
    await expect(finding).rejects.toThrow(lab.advertised)
  })

  test('gives way to the one that was typed', async () => {
    lab.advertised = await freeAddress()
    expect(await find({ keepAddress: true })).toMatchObject({
      cluster: { server: lab.address },
      advertised: lab.advertised,
    })
  })

  test('is one of several: one that works is enough, and the others are told', async () => {
    const gone = await freeAddress()
    lab.more = `    extensions: [{name: sallyport.dev/cluster-location, extension: {addresses: ["${gone}"]}}]\n`
    const { warnings } = await find()
    expect(warnings).toEqual([expect.stringContaining(`nothing listens at ${new URL(gone).host}`)])
  })
})

describe('at trace [DISC-T9]', () => {
  const traced = (): { readonly log: Logger; readonly lines: string[] } => {
    const lines: string[] = []
    const at = (context: object): Logger => ({
      ...silentLogger,
      trace: (fields, message) =>
        void lines.push(`${message} ${JSON.stringify({ ...context, ...fields })}`),
      child: (more) => at({ ...context, ...more }),
    })
    return { log: at({}), lines }
  }

  test('every request, answer and decision is told, and nothing that was signed', async () => {
    lab.knowsSignedRequests = false
    const { log, lines } = traced()
    await find({}, { log })
    expect(lines.map((line) => line.split(' {')[0])).toEqual([
      'request',
      'response',
      'signed request refused, asking without a credential',
      'request',
      'response',
      'proven',
      'roots of the document',
      'request',
      'response',
      'proven',
    ])
    expect(lines[1]).toContain('"status":401')
    const [, secret = ''] = labTokenText.split('.')
    for (const form of [secret, 'eyJ', Buffer.from(secret).toString('base64').slice(0, -2)])
      expect(lines.join()).not.toContain(form)
  })

  test('a link to a document is shown without its query, which may be a password', async () => {
    const { log, lines } = traced()
    const method = { by: 'url' as const, url: `${lab.address}/cluster.yaml?sig=hunter2` }
    const onProgress = (progress: object): void => void lines.push(JSON.stringify(progress))
    const parts = { log, onProgress, systemRoots: () => Promise.resolve([lab.ca.bundlePem]) }
    const finding = find({ method }, parts)
    await expect(finding).rejects.toThrow('/cluster.yaml answered 404')
    await expect(finding).rejects.not.toThrow('hunter2')
    expect(lines.join()).toContain('/cluster.yaml"')
    expect(lines.join()).not.toContain('hunter2')
  })
})
