// Runs as a Pod: asks the cluster who it is, by the in-cluster configuration of @kubernetes/client-node.
import { AuthenticationV1Api, KubeConfig } from '@kubernetes/client-node'

const config = new KubeConfig()
config.loadFromCluster()
const api = config.makeApiClient(AuthenticationV1Api)
const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
const { status } = await api.createSelfSubjectReview({ body })
const { server } = config.getCurrentCluster()
const { namespace } = config.getContextObject(config.getCurrentContext())
console.log(JSON.stringify({ server, namespace, username: status.userInfo.username }))
