import { expect, test } from 'vitest'
import { Secret } from '../core/index.ts'
import { makeKubeconfig } from './make-kubeconfig.ts'
import { parseKubeconfig } from './parse-kubeconfig.ts'
import { renderKubeconfig } from './render-kubeconfig.ts'

test('what is made can be written and read again', async () => {
  const config = makeKubeconfig({
    clusterName: 'sallyport',
    server: 'https://127.0.0.1:6443',
    caPem: 'ca',
    userName: 'n',
    clientCertPem: 'cert',
    clientKeyPem: new Secret('key'),
  })
  const text = await renderKubeconfig(config)
  const again = await parseKubeconfig(text, 'x')
  expect(again).toEqual(config)
  expect(again.users.get('n')?.clientKeyData?.reveal()).toBe('key')
  expect(text).toContain('name: "n"')
})
