# What `make run` brings along: the maker of images and parts, and their web server.
DEMO := $(O)/demo
$(DEMO)/demo_make: $(O)/tests/demo/demo_make.o $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON) $(L_WORKER) $(call pkg,--libs,libturbojpeg)
$(DEMO)/demo_server: $(O)/tests/demo/demo_server.o $(LIB_COMMON)
	$(link) $(LD_ALL) $(L_COMMON) $(L_MHD)
.PHONY: demo
demo: $(DEMO)/demo_make $(DEMO)/demo_server
