import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  hasKubeApiserver,
  type KubeApiserverProcess,
  startKubeApiserver,
} from '../../support/kube-apiserver-process.ts'
import { type Kubectl, kubectlAt } from '../../support/kubectl.ts'
import { findPeer, pathOrReason } from '../../support/peers.ts'

const kubectlPath = pathOrReason(findPeer('kubectl-1.36'))
const fileOf = (name: string): string =>
  fileURLToPath(new URL(`../../../deploy/${name}`, import.meta.url))

describe.skipIf(!hasKubeApiserver() || kubectlPath === undefined)('the files to deploy', () => {
  let api: KubeApiserverProcess
  let kubectl: Kubectl

  beforeAll(async () => {
    const egress = fileOf('egress-selector-configuration.yaml')
    api = await startKubeApiserver([`--egress-selector-config-file=${egress}`])
    kubectl = kubectlAt(kubectlPath ?? '', api.kubeconfig, api.directory)
  })

  afterAll(() => api.stop())

  test('[TUN-I4] kube-apiserver runs with the configuration of its egress', async () => {
    expect(await kubectl('get --raw=/readyz')).toBe('ok')
  })

  test.each(['agent', 'server'])(
    '[TUN-I4] kube-apiserver finds nothing wrong with the Pod of the %s',
    async (end) => {
      const manifest = fileOf(`tunnel-${end}.pod.yaml`)
      const create = 'create --dry-run=server --validate=strict'
      expect(await kubectl.outcome(`${create} --filename='${manifest}'`)).toEqual({
        code: 0,
        stdout: `pod/sallyport-tunnel-${end} created (server dry run)\n`,
        stderr: '',
      })
    },
  )
})
