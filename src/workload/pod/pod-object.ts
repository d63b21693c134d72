import { type KubeObject, workloadMark } from '../../core/index.ts'
import type { WorkloadPlan } from './workload-plan.ts'

/** Where in-cluster clients look for their service account. */
export const serviceAccountPath = '/var/run/secrets/kubernetes.io/serviceaccount'

/** What stands where a Pod names the image of its container. */
export const localImage = 'sallyport.dev/local-process'

const rootCa = 'kube-root-ca.crt'

/** The volume as the API server's admission would have added it, and a file for each further audience. */
const volumeOf = ({ tokens, tokenSeconds }: WorkloadPlan) => ({
  name: 'kube-api-access',
  projected: {
    sources: [
      ...tokens.map(({ file: path, audience }) => ({
        serviceAccountToken: {
          path,
          expirationSeconds: tokenSeconds,
          ...(audience !== undefined && { audience }),
        },
      })),
      { configMap: { name: rootCa, items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      {
        downwardAPI: {
          items: [
            { path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } },
          ],
        },
      },
    ],
  },
})

/** The Pod of a workload. The command is not in it: its words may be nobody's business. */
export function podObject(plan: WorkloadPlan): KubeObject {
  const [first] = plan.ports
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: plan.name,
      namespace: plan.namespace,
      labels: { ...plan.labels, [workloadMark]: plan.machine },
    },
    spec: {
      nodeName: plan.machine,
      serviceAccountName: plan.serviceAccount,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      restartPolicy: 'Never',
      volumes: [volumeOf(plan)],
      containers: [
        {
          name: plan.container,
          image: localImage,
          imagePullPolicy: 'Never',
          ports: plan.ports.map(({ name, port }) => ({
            containerPort: port,
            ...(name !== undefined && { name }),
          })),
          ...(first && { readinessProbe: { tcpSocket: { port: first.port } } }),
          volumeMounts: [
            { name: 'kube-api-access', mountPath: serviceAccountPath, readOnly: true },
          ],
        },
      ],
    },
  }
}
