{{/* The configuration: what the values say, and what the manifest decides. */}}

{{- define "numalign.config" -}}
{{- $given := deepCopy (.Values.config.numalign | default dict) -}}
{{- range list "runtimeDirectory" "stateDirectory" "hostRoot" "metrics" -}}
{{- if hasKey $given . -}}
{{- fail (printf "config.numalign.%s is given, but the chart writes it itself, as its manifest has it: leave it out" .) -}}
{{- end -}}
{{- end -}}
{{- if hasKey ($given.devicePlugins | default dict) "mode" -}}
{{- fail "config.numalign.devicePlugins.mode is given: set devices.mode instead" -}}
{{- end -}}
{{- range list "onReject" "address" "injectDevices" "socket" -}}
{{- if hasKey (dig "agent" "nri" dict $given) . -}}
{{- fail (printf "config.numalign.agent.nri.%s is given, but the chart writes it itself: leave it out; nri.onReject, nri.socketDirectory and devices.mode are the values for it" .) -}}
{{- end -}}
{{- end -}}
{{- if hasKey (dig "agent" "node" dict $given) "address" -}}
{{- fail "config.numalign.agent.node.address is given, but the chart writes it itself: leave it out" -}}
{{- end -}}
{{- $metrics := dict "address" "0.0.0.0:9464" -}}
{{- if eq .Values.services.layout "separate" -}}
{{- $services := dict -}}
{{- range include "numalign.services" . | fromYamlArray -}}
{{- if ne .serves "admission" -}}
{{- $_ := set $services .serves (printf "0.0.0.0:%v" .port) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $metrics "services" $services -}}
{{- end -}}
{{- $section := dict "runtimeDirectory" "/run/numalign/sockets" "stateDirectory" "/var/lib/numalign" "hostRoot" "/host" "metrics" $metrics -}}
{{- if eq .Values.devices.mode "observer" -}}
{{- $_ := set $section "devicePlugins" (dict "mode" "observer" "podResourcesSocket" "/var/lib/kubelet/pod-resources/kubelet.sock") -}}
{{- else if eq .Values.devices.mode "host" -}}
{{- $_ := set $section "devicePlugins" (dict "mode" "host" "directory" "/var/lib/numalign-device-plugins" "pluginsRegistry" "") -}}
{{- end -}}
{{- if .Values.nri.enabled -}}
{{- $nri := dict "onReject" .Values.nri.onReject "address" "0.0.0.0:9470" -}}
{{- if eq .Values.devices.mode "host" -}}
{{- $_ := set $nri "injectDevices" true -}}
{{- end -}}
{{- $_ := set $section "agent" (dict "api" dict "nri" $nri "node" (dict "address" "0.0.0.0:9471")) -}}
{{- else if ne .Values.devices.mode "none" -}}
{{- fail (printf "devices.mode is %q, which needs nri.enabled: true" .Values.devices.mode) -}}
{{- else if .Values.node.exportTopology -}}
{{- fail "node.exportTopology is true, which needs nri.enabled: true" -}}
{{- end -}}
{{- $kind := dict "apiVersion" "kubelet.config.k8s.io/v1beta1" "kind" "KubeletConfiguration" -}}
{{- toYaml (merge $kind (dict "numalign" (mergeOverwrite $section $given)) (deepCopy .Values.config)) -}}
{{- end }}

{{/* The collector's, which scrapes every container that has metrics. */}}
{{- define "numalign.collector" -}}
{{- $targets := list -}}
{{- range include "numalign.services" . | fromYamlArray -}}
{{- $targets = append $targets (printf "127.0.0.1:%v" .port) -}}
{{- end -}}
{{- if .Values.nri.enabled -}}
{{- $targets = concat $targets (list "127.0.0.1:9470" "127.0.0.1:9471") -}}
{{- end -}}
{{- $config := .Files.Get "files/collector.yaml" | fromYaml -}}
{{- range $config.receivers.prometheus.config.scrape_configs -}}
{{- $_ := set (index .static_configs 0) "targets" $targets -}}
{{- end -}}
{{- toYaml $config -}}
{{- end }}
