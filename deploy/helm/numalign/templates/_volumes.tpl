{{- define "numalign.volumes" -}}
{{- $name := include "numalign.fullname" . -}}
- name: config
  configMap:
    name: {{ $name }}-config
- name: sockets
  emptyDir: {}
- name: state
  hostPath:
    path: /var/lib/numalign
    type: DirectoryOrCreate
- name: host
  hostPath:
    path: /
    type: Directory
{{- if .Values.nri.enabled }}
- name: runtime
  hostPath:
    path: {{ .Values.nri.socketDirectory }}
    type: DirectoryOrCreate
- name: cgroups
  hostPath:
    path: /sys/fs/cgroup
    type: Directory
- name: api-access
  projected:
    sources:
    - serviceAccountToken:
        path: token
        expirationSeconds: 3600
    - configMap:
        name: kube-root-ca.crt
        items:
        - {key: ca.crt, path: ca.crt}
    - downwardAPI:
        items:
        - path: namespace
          fieldRef:
            fieldPath: metadata.namespace
{{- end }}
{{- if eq .Values.devices.mode "observer" }}
- name: pod-resources
  hostPath:
    path: {{ .Values.devices.podResourcesDirectory }}
    type: Directory
{{- else if eq .Values.devices.mode "host" }}
- name: device-plugins
  hostPath:
    path: {{ .Values.devices.pluginDirectory }}
    type: DirectoryOrCreate
{{- end }}
{{- if .Values.collector.enabled }}
- name: collector
  configMap:
    name: {{ $name }}-collector
{{- end }}
{{- end }}
