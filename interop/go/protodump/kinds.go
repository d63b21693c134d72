package main

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

var scheme = clientscheme.Scheme

// kinds are those that our server takes in request bodies.
var kinds = []runtime.Object{
	&corev1.Namespace{},
	&corev1.ConfigMap{},
	&corev1.Secret{},
	&corev1.ServiceAccount{},
	&corev1.Service{},
	&corev1.Endpoints{},
	&corev1.Pod{},
	&corev1.Node{},
	&corev1.Event{},
	&corev1.Binding{},
	&discoveryv1.EndpointSlice{},
	&eventsv1.Event{},
	&coordinationv1.Lease{},
	&rbacv1.Role{},
	&rbacv1.ClusterRole{},
	&rbacv1.RoleBinding{},
	&rbacv1.ClusterRoleBinding{},
	&certificatesv1.CertificateSigningRequest{},
	&authenticationv1.TokenReview{},
	&authenticationv1.TokenRequest{},
	&authenticationv1.SelfSubjectReview{},
	&authorizationv1.SubjectAccessReview{},
	&authorizationv1.LocalSubjectAccessReview{},
	&authorizationv1.SelfSubjectAccessReview{},
	&authorizationv1.SelfSubjectRulesReview{},
	&metav1.DeleteOptions{},
	&metav1.Status{},
}

// gvkOf names a kind; the options of meta/v1 are in every group, ours are sent as v1.
func gvkOf(object runtime.Object) (schema.GroupVersionKind, error) {
	switch object.(type) {
	case *metav1.DeleteOptions:
		return schema.GroupVersionKind{Version: "v1", Kind: "DeleteOptions"}, nil
	case *metav1.Status:
		return schema.GroupVersionKind{Version: "v1", Kind: "Status"}, nil
	}
	found, _, err := scheme.ObjectKinds(object)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return found[0], nil
}
