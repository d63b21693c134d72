export { Http1Upstream } from './pool.ts'
export {
  RequestInvalid,
  ResponseBody,
  type ResponseHead,
  ResponseInvalid,
  type ResponseListener,
  requestStatus,
  type Upstream,
  type UpstreamExchange,
  type UpstreamRequest,
} from './upstream.ts'
